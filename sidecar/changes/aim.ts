import type { Wanted } from '../../feedback/carry.ts'
import type { Deed } from '../admin/runtime-facts.ts'
import type { Plan } from '../build/plans.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import { Fault } from '../config/fault.ts'
import { lineOf, linesOf, type Made } from './changes.ts'
import { isLiteral } from './lines.ts'

/** A wish that cannot be granted, with the status of the answer. */
export class Refusal extends Error {
  readonly status: 404 | 409 | 422 | 503

  constructor(status: 404 | 409 | 422 | 503, text: string) {
    super(text)
    this.status = status
  }
}

/** Who wishes, and when by the wall clock. */
export interface Wisher {
  readonly by: string
  readonly at: number
}

/** The changes of a group once a wish is granted. */
export interface Next {
  readonly made: readonly Made[]
  /** Names of the peers that it is about. */
  readonly peers: readonly string[]
  readonly deeds: readonly Deed[]
  /** What is told of it, a line each. */
  readonly words: readonly string[]
  /** Whether a group that cannot be so is a conflict, and no mistake in what was asked. */
  readonly conflict?: true
}

/** What an address means: one peer, or all of a line. */
export interface Aim {
  readonly whole: boolean
  readonly target: string
  /** Texts of the lines that it is about. */
  readonly lines: readonly string[]
  /** Peers that it has now. */
  readonly peers: readonly Wanted[]
}

/** @throws Refusal where there is no such peer */
export function aimAt(plan: Plan, made: readonly Made[], address: string): Aim {
  const { name, wanted } = plan
  const aimAtPeer = (text: string): Aim | undefined => {
    const peers = wanted.filter((peer) => peer.name === text)
    if (peers.length === 0) return undefined
    return { whole: false, target: text, lines: [...new Set(peers.map(lineOf))], peers }
  }
  const peer = aimAtPeer(address) ?? aimAtPeer(canonical(address) ?? '')
  if (peer) return peer
  const gone = made.some(({ kind, whole, target }) => kind === 'removed' && whole && target === address)
  if (!gone && linesOf(plan, made).some((line) => line.address === address && !isLiteral(address))) {
    const peers = wanted.filter((peer) => lineOf(peer) === address)
    return { whole: true, target: address, lines: [address], peers }
  }
  const names = [...new Set(wanted.map(({ name }) => name))]
  const some = names.length > 20 ? [...names.slice(0, 20), `${names.length - 20} more`] : names
  throw new Refusal(
    404,
    `no peer "${address}" in upstream "${name}"; there are: ${some.join(', ') || 'none'}`,
  )
}

/** The address of a text as peers have it in their names; undefined: it is none. */
export function canonical(text: string): string | undefined {
  try {
    return formatAddress(serverAddress(text))
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}
