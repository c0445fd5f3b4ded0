import type { Call } from '../../feedback/call.ts'
import type { PeerEngine } from '../tls/peer-engine.ts'
import type { Settings, Target } from './route.ts'

/** How TLS is spoken with the peers of a target. */
export interface TargetTls {
  readonly engine: PeerEngine
  readonly name: string
}

/** @returns undefined where it is not spoken */
export function targetTls(
  call: Call,
  { peerTls }: Settings,
  { secure = false, name = '' }: Target,
): TargetTls | undefined {
  if (!secure || peerTls === undefined) return undefined
  return { engine: peerTls.engine, name: peerTls.name?.(call) ?? name }
}
