import { grpcAddress, hasVariables, type LocationKey, locationKey, proxyAddress } from '../address.ts'
import type { AccessLogLine, HttpBlock, LocationBlock, ServerBlock } from '../model.ts'
import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { IfBlock, RewriteStep } from '../rewrite-model.ts'

/** Formats that are there without a `log_format`. */
const builtinFormats = ['combined', 'json'] as const

const uriText =
  '"proxy_pass" cannot have URI part in a location specified with a regex, inside a named location, inside a ' +
  'combined location, inside an "if" statement, or inside a "limit_except" block'

/**
 * Rules of what stands in servers, locations and `if`s.
 * @throws ConfigError
 */
export function checkLocations(http: HttpBlock, reading: Reading): void {
  new LocationCheck(http, reading).run()
}

class LocationCheck {
  readonly #http: HttpBlock
  readonly #reading: Reading
  readonly #formats = new Set<string>(builtinFormats)
  readonly #templates: ReadonlySet<string>
  /** Names of groups, lower case. */
  readonly #groups: ReadonlySet<string>

  constructor(http: HttpBlock, reading: Reading) {
    this.#http = http
    this.#reading = reading
    this.#templates = new Set(['all', ...Object.keys(http.prometheus_templates ?? {})])
    this.#groups = new Set(Object.keys(http.upstreams ?? {}).map((name) => name.toLowerCase()))
  }

  run(): void {
    const own = new Set<string>()
    for (const format of this.#http.log_format ?? []) {
      // `json` may be redefined, since many files bring their own.
      if (format.name === 'combined' || own.has(format.name)) {
        this.#fail(format, '', `duplicate "log_format" name "${format.name}"`)
      }
      own.add(format.name)
      this.#formats.add(format.name)
    }
    this.#logs(this.#http.access_log)
    for (const server of this.#http.servers ?? []) {
      this.#logs(server.access_log)
      this.#inner(server, undefined)
    }
  }

  #inner(level: ServerBlock | LocationBlock, parent: LocationKey | undefined): void {
    this.#steps(level.rewrites)
    for (const [key, location] of Object.entries(level.locations ?? {})) {
      const own = locationKey(key)
      if (parent) this.#nesting(location, own, parent)
      this.#logs(location.access_log)
      this.#content(location, own)
      this.#inner(location, own)
    }
  }

  #nesting(location: LocationBlock, { kind, text }: LocationKey, parent: LocationKey): void {
    if (parent.kind === 'exact' || parent.kind === 'named') {
      const what = parent.kind === 'exact' ? 'exact' : 'named'
      this.#fail(location, '', `location "${text}" cannot be inside the ${what} location "${parent.text}"`)
    }
    if (kind === 'named') this.#fail(location, '', `named location "${text}" can be on the server level only`)
    if (kind !== 'regex' && kind !== 'regex-any-case' && !text.startsWith(parent.text)) {
      this.#fail(location, '', `location "${text}" is outside location "${parent.text}"`)
    }
  }

  #content(location: LocationBlock, { kind, text }: LocationKey): void {
    const contents = (['proxy_pass', 'grpc_pass', 'api', 'prometheus'] as const).filter(
      (key) => location[key] !== undefined,
    )
    if (contents.length > 1) {
      this.#fail(location, contents[1]!, `"${contents[0]}" and "${contents[1]}" directives are incompatible`)
    }
    const byText = kind === 'prefix' || kind === 'prefix-only'
    if (location.api !== undefined && byText && !text.endsWith('/')) {
      const where = 'inside prefix location without slash at the end'
      this.#fail(location, 'api', `"api" directive cannot be used ${where}`)
    }
    if (location.prometheus !== undefined && !this.#templates.has(location.prometheus)) {
      this.#fail(location, 'prometheus', `unknown prometheus template "${location.prometheus}"`)
    }
    this.#target(location, byText || kind === 'exact')
  }

  #target(level: LocationBlock | IfBlock, mayHaveUri: boolean): void {
    const { proxy_pass: url, grpc_pass: address } = level
    if (url !== undefined && !hasVariables(url)) {
      const { host, port, uri } = proxyAddress(url)
      if (uri !== undefined && !mayHaveUri) this.#fail(level, 'proxy_pass', uriText)
      if (port !== undefined) this.#withPort(level, 'proxy_pass', host, port)
    }
    if (address !== undefined && !hasVariables(address)) {
      const { authority, host, port, unix } = grpcAddress(address)
      if (port !== undefined) this.#withPort(level, 'grpc_pass', host, port)
      else if (!unix && !this.#groups.has(host)) {
        this.#fail(level, 'grpc_pass', `no port in upstream "${authority}"`)
      }
    }
  }

  #withPort(level: LocationBlock | IfBlock, key: string, host: string, port: number): void {
    if (this.#groups.has(host)) this.#fail(level, key, `upstream "${host}" may not have port ${port}`)
  }

  #steps(steps: readonly RewriteStep[] | undefined): void {
    for (const step of steps ?? []) {
      if (!('if' in step)) continue
      this.#logs(step.access_log)
      if (step.proxy_pass !== undefined && step.grpc_pass !== undefined) {
        this.#fail(step, 'grpc_pass', '"proxy_pass" and "grpc_pass" directives are incompatible')
      }
      this.#target(step, false)
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
