import { isIP } from 'node:net'
import { hasVariables, serverAddress, streamTarget } from '../address.ts'
import { eachListen, listenTexts } from '../listen-range.ts'
import type { AccessLogLine, HttpBlock } from '../model.ts'
import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { StreamBlock, StreamServerBlock } from '../stream-model.ts'
import type { UpstreamBlock } from '../upstream-model.ts'

/** The format that is there in `stream` without a `log_format`. */
const streamFormats = ['json'] as const

const v1 = '"proxy_protocol" directive requires "v2" where "listen" has "udp"'

/**
 * Rules of what stands in `stream`, but of its groups.
 * @throws ConfigError
 */
export function checkStream(stream: StreamBlock, http: HttpBlock | undefined, reading: Reading): void {
  new StreamCheck(stream, http, reading).run()
}

class StreamCheck {
  readonly #stream: StreamBlock
  readonly #reading: Reading
  readonly #formats = new Set<string>(streamFormats)
  /** By name, lower case. */
  readonly #groups: ReadonlyMap<string, UpstreamBlock>
  /** Addresses that are taken, those of UDP apart. */
  readonly #sockets = new Set<string>()

  constructor(stream: StreamBlock, http: HttpBlock | undefined, reading: Reading) {
    this.#stream = stream
    this.#reading = reading
    const groups = Object.entries(stream.upstreams ?? {})
    this.#groups = new Map(groups.map(([name, group]) => [name.toLowerCase(), group]))
    for (const { listen } of http?.servers ?? []) {
      for (const { address } of eachListen(listen ?? [{ address: '*:80' }]))
        this.#sockets.add(socketName(address))
    }
  }

  run(): void {
    const own = new Set<string>()
    for (const format of this.#stream.log_format ?? []) {
      if (own.has(format.name)) this.#fail(format, '', `duplicate "log_format" name "${format.name}"`)
      own.add(format.name)
      this.#formats.add(format.name)
    }
    this.#logs(this.#stream.access_log)
    for (const server of this.#stream.servers ?? []) {
      this.#logs(server.access_log)
      this.#listeners(server)
      this.#proxyProtocol(server)
      this.#content(server)
    }
  }

  #listeners(server: StreamServerBlock): void {
    if (server.listen === undefined) this.#fail(server, '', 'no "listen" is defined for server')
    for (const listen of server.listen) {
      for (const address of listenTexts(listen.address)) {
        const name = socketName(address)
        const socket = listen.udp ? `udp ${name}` : name
        if (this.#sockets.has(socket)) this.#fail(listen, '', `duplicate "${name}" address and port pair`)
        this.#sockets.add(socket)
      }
    }
  }

  /** Version 1 of the PROXY protocol has no word for UDP. */
  #proxyProtocol(server: StreamServerBlock): void {
    const version = server.proxy_protocol ?? this.#stream.proxy_protocol ?? false
    const udp = server.listen?.some((listen) => listen.udp) ?? false
    if (!udp || version === false || version === 'v2') return
    this.#fail(server, server.proxy_protocol === undefined ? '' : 'proxy_protocol', v1)
  }

  #content(server: StreamServerBlock): void {
    const { proxy_pass: target } = server
    if (target === undefined && server.return === undefined) this.#fail(server, '', 'no handler for server')
    if (target === undefined) return
    if (server.return !== undefined) {
      this.#fail(server, 'return', '"proxy_pass" and "return" directives are incompatible')
    }
    if (!hasVariables(target)) this.#target(server, target)
  }

  #target(server: StreamServerBlock, target: string): void {
    const address = streamTarget(target)
    const udp = server.listen!.some((listen) => listen.udp)
    if (address.kind === 'unix') {
      if (udp) this.#fail(server, 'proxy_pass', `"${target}" cannot be reached by UDP`)
      return
    }
    const { host, port } = address
    const group = this.#groups.get(host)
    if (group === undefined && port === undefined) {
      const hint = isIP(host) > 0 ? '' : ', and "stream" has no upstream of that name'
      this.#fail(server, 'proxy_pass', `no port in upstream "${target}"${hint}`)
    }
    if (group === undefined) return
    if (port !== undefined) this.#fail(server, 'proxy_pass', `upstream "${host}" may not have port ${port}`)
    for (const { address } of group.servers ?? []) {
      if (udp && serverAddress(address).kind === 'unix') {
        this.#fail(server, 'proxy_pass', `"${address}" of upstream "${host}" cannot be reached by UDP`)
      }
    }
  }

  #logs(logs: 'off' | readonly AccessLogLine[] | undefined): void {
    for (const log of logs === 'off' ? [] : (logs ?? [])) {
      if (log.format !== undefined && !this.#formats.has(log.format)) {
        this.#fail(log, 'format', `unknown log format "${log.format}"`)
      }
    }
  }

  #fail(part: object, key: string, text: string): never {
    fail(this.#reading.at(part, key) ?? { file: '', line: 0, syntax: 'yaml' }, text)
  }
}

function socketName(address: string): string {
  return address.replace(/^\*/, '0.0.0.0')
}
