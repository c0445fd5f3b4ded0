import { grpcAddress, hasVariables, proxyAddress } from '../address.ts'
import type { HttpBlock, LocationBlock, ServerBlock, Settings } from '../model.ts'
import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { IfBlock, RewriteStep } from '../rewrite-model.ts'
import type { StreamBlock } from '../stream-model.ts'
import type { TlsPeerSettings } from '../tls-model.ts'

/** Levels from the inside out. */
type Levels<P extends Prefix> = readonly TlsPeerSettings<P>[]
type Prefix = 'proxy_ssl_' | 'grpc_ssl_'

/**
 * Rules of TLS towards peers, where it is spoken.
 * @throws ConfigError
 */
export function checkTlsPeers(http: HttpBlock, reading: Reading): void {
  const pass = (level: LocationBlock | IfBlock, levels: readonly Settings[]) => {
    if (isSecure(level.proxy_pass, proxyAddress)) checkSettings('proxy_ssl_', levels, reading)
    if (isSecure(level.grpc_pass, grpcAddress)) checkSettings('grpc_ssl_', levels, reading)
  }
  const walk = (level: ServerBlock | LocationBlock, outer: readonly Settings[]) => {
    for (const location of Object.values(level.locations ?? {})) {
      const levels = [location, ...outer]
      pass(location, levels)
      for (const branch of branches(location.rewrites)) pass(branch, levels)
      walk(location, levels)
    }
  }
  for (const server of http.servers ?? []) walk(server, [server, http])
}

/**
 * The same in `stream`.
 * @throws ConfigError
 */
export function checkStreamTlsPeers(stream: StreamBlock, reading: Reading): void {
  for (const server of stream.servers ?? []) {
    if (server.proxy_ssl ?? stream.proxy_ssl) checkSettings('proxy_ssl_', [server, stream], reading)
  }
}

/** What variables say is known when there is a request, so all has to be ready for it. */
function isSecure(text: string | undefined, address: (text: string) => { readonly secure: boolean }) {
  return text !== undefined && (hasVariables(text) || address(text).secure)
}

function branches(steps: readonly RewriteStep[] = []): IfBlock[] {
  return steps.filter((step) => 'if' in step)
}

function checkSettings<P extends Prefix>(prefix: P, levels: Levels<P>, reading: Reading): void {
  // The keys are those of the type; TypeScript does not look into names put together.
  const find = (key: string): readonly [unknown, object] => {
    const name = `${prefix}${key}`
    const owner: object = levels.find((level) => Object.hasOwn(level, name)) ?? {}
    return [Object.entries(owner).find(([own]) => own === name)?.[1], owner]
  }
  const refuse = (key: string, text: string): never => {
    const place = reading.at(find(key)[1], `${prefix}${key}`)
    fail(place ?? { file: '', line: 0, syntax: 'yaml' }, text)
  }
  const [certificate] = find('certificate')
  if (certificate && !find('certificate_key')[0]) {
    refuse('certificate', `no "${prefix}certificate_key" is defined for certificate "${certificate}"`)
  }
  if (find('verify')[0] && !find('trusted_certificate')[0]) {
    refuse('verify', `no ${prefix}trusted_certificate for ${prefix}verify`)
  }
}
