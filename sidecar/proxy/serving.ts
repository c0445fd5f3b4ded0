import type { Call } from '../../feedback/call.ts'
import { observeRequest } from '../../feedback/observe.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type { ClientCounts } from '../../feedback/tally.ts'
import { publishRequest } from '../telemetry/channels.ts'
import { tracing } from '../telemetry/tracing.ts'
import { ClientTls } from '../tls/client-tls.ts'
import type { BodyFault } from './body.ts'
import type { Exchange } from './exchange.ts'
import { forward } from './forward.ts'
import type { ForwardEnv } from './forwarded.ts'
import type { Handler } from './host.ts'
import { endsConnection, type LocalAnswer, localResponse } from './respond.ts'
import type { Settings } from './route.ts'
import { type Decision, decide, follow, type Router, type VirtualServer } from './routes.ts'

/** An answer of the status tree or of the Prometheus templates, made elsewhere. */
export interface MadeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What serving needs from the rest of the program. */
export interface ServingEnv extends ForwardEnv {
  /** `api PATH` in a location: `location` is its prefix, undefined for other locations. */
  status(call: Call, path: string, location: string | undefined): MadeAnswer
  prometheus(template: string, method: string): Promise<MadeAnswer>
  /** A line for the error log about a request. */
  complain(call: Call, text: string): void
  /** A line for those who want to know of clients' mistakes (level `info`). */
  note(call: Call, text: string): void
  /** Something that should not happen did: the request gets a 500 and the process goes on. */
  broken(error: unknown): void
}

/** Serves requests by the routes that are in force: decides, forwards or answers, and follows error pages. */
export class Serving implements Handler {
  /** By listening address: the last routes that have it, so that connections of a removed one still end in order. */
  readonly #routers = new Map<string, Router>()
  /** Requests on addresses that are open already while their routes are not yet in force. */
  #early: (() => void)[] = []
  readonly #env: ServingEnv
  /** `requests` of it are those in progress: what a drain waits for. */
  readonly #counts: ClientCounts
  /** Zones that a request is counted in, until it ends. */
  readonly #zones = new WeakMap<Exchange, ServerZone[]>()

  constructor(router: Router, env: ServingEnv, counts: ClientCounts) {
    this.#env = env
    env.tunnels.zonesOf = (exchange) => this.#zones.get(exchange) ?? []
    this.#counts = counts
    this.use(router)
  }

  /** Takes other routes for requests that begin from now on. */
  use(router: Router): void {
    for (const key of router.keys()) this.#routers.set(key, router)
    const early = this.#early
    this.#early = []
    for (const go of early) go()
  }

  serve(exchange: Exchange, key: string): void {
    this.#counts.requests += 1
    this.#run(exchange, key).then(
      () => exchange.handled(),
      (error: unknown) => {
        this.#env.broken(error)
        this.#abort(exchange)
        exchange.handled()
      },
    )
  }

  ended(exchange: Exchange): void {
    this.#counts.requests -= 1
    const { call } = exchange
    for (const zone of this.#zones.get(exchange) ?? []) zone.end(call)
    tracing?.end(call)
    observeRequest(call)
    for (const log of exchange.settings.accessLogs) log(call)
    publishRequest(call)
  }

  malformed(call: Call, settings: Settings, why: string, ours = false): void {
    const text = `client sent no request that can be served: ${why}`
    if (ours) this.#env.complain(call, text)
    else this.#env.note(call, text)
    for (const zone of settings.statusZones) {
      zone.begin()
      zone.end(call)
    }
    tracing?.end(call)
    for (const log of settings.accessLogs) log(call)
    publishRequest(call)
  }

  unsecured(call: Call, why: string): void {
    this.#env.note(call, why)
  }

  unruly(call: Call, why: string): void {
    this.#env.note(call, why)
  }

  unreadable({ call }: Exchange, why: string): void {
    this.#env.note(call, `client sent a body that cannot be read: ${why}`)
  }

  /** Its routes would keep everything that they lead to. */
  closed(key: string): void {
    this.#routers.delete(key)
  }

  async #run(exchange: Exchange, key: string): Promise<void> {
    const { call } = exchange
    let router = this.#routers.get(key)
    while (!router) {
      await new Promise<void>((resolve) => this.#early.push(resolve))
      router = this.#routers.get(key)
    }
    const { server, refusal } = router.admit(key, call)
    tracing?.begin(call)
    this.#enter(exchange, server.route.settings)
    if (refusal !== undefined) this.#env.note(call, refusalText(refusal, call))
    let decision: Decision =
      refusal === undefined
        ? decide(server, call)
        : { kind: 'respond', route: server.route, status: refusal, content: {}, error: undefined }
    call.location = decision.route.location
    for (;;) {
      this.#enter(exchange, decision.route.settings)
      if (exchange.gone) return
      const next = await this.#carryOut(exchange, server, decision)
      if (!next) return
      decision = next
    }
  }

  /** @returns what to do next; undefined when the client has its answer or is gone */
  async #carryOut(
    exchange: Exchange,
    server: VirtualServer,
    decision: Decision,
  ): Promise<Decision | undefined> {
    const { call } = exchange
    const { route } = decision
    if (decision.kind === 'close') {
      call.status = 444
      exchange.connection.hangUp()
      return undefined
    }
    if (decision.kind === 'respond') {
      if (decision.error !== undefined) this.#env.complain(call, decision.error)
      if (endsConnection(decision.status) && decision.content.text === undefined) exchange.close = true
      const answer = localResponse(call, route.settings, decision.status, decision.content)
      if (answer.kind !== 'response') return follow(server, call, answer)
      sendLocal(exchange, answer)
      return undefined
    }
    const { content } = decision
    if (content.kind === 'proxy') {
      const end = await forward(exchange, content.pass, this.#env)
      if (end.kind === 'done' || exchange.gone) return undefined
      const error = end.kind === 'refused' ? end.error : undefined
      if (exchange.body?.fault) this.#env.note(call, bodyTexts[exchange.body.fault])
      else if (end.status === 413) this.#env.note(call, bodyTexts.too_large)
      return { kind: 'respond', route, status: end.status, content: {}, error }
    }
    const prefix = route.location.startsWith('/') ? route.location : undefined
    const made =
      content.kind === 'api'
        ? this.#env.status(call, content.path, prefix)
        : await this.#env.prometheus(content.template, call.method)
    const { 'content-type': type, ...others } = made.headers
    const headers = Object.entries(others).flatMap(([name, value]) =>
      name.toLowerCase() === 'content-length' || name.toLowerCase() === 'content-type' ? [] : [name, value],
    )
    return {
      kind: 'respond',
      route,
      status: made.status,
      content: { text: made.body.toString('latin1'), type: type ?? made.headers['Content-Type'], headers },
      error: undefined,
    }
  }

  /** The settings in force from now on, and the zones they count in. */
  #enter(exchange: Exchange, settings: Settings): void {
    exchange.settings = settings
    if (settings.statusZones.length === 0) return
    let zones = this.#zones.get(exchange)
    if (!zones) {
      zones = []
      this.#zones.set(exchange, zones)
    }
    for (const zone of settings.statusZones) {
      if (zones.includes(zone)) continue
      zone.begin()
      zones.push(zone)
    }
  }

  #abort(exchange: Exchange): void {
    const { response, call } = exchange
    if (response.headersSent || exchange.gone) {
      exchange.cut()
      return
    }
    exchange.close = true
    const answer = localResponse(call, exchange.settings, 500, { text: '500 Internal Server Error\n' })
    if (answer.kind === 'response') sendLocal(exchange, answer)
  }
}

function sendLocal(exchange: Exchange, answer: Extract<LocalAnswer, { kind: 'response' }>): void {
  const { call, response } = exchange
  if (exchange.gone) return
  if (answer.close) exchange.close = true
  exchange.sendHead(answer.status, undefined, answer.headers, answer.body === undefined)
  if (answer.body) {
    call.bodyBytesSent += answer.body.length
    response.write(answer.body)
  }
  response.end()
}

/** What a client did with a body that was not taken. */
const bodyTexts: Readonly<Record<BodyFault, string>> = {
  too_large: 'client intended to send too large body',
  timeout: 'client timed out while sending its body',
  aborted: 'client closed its connection while sending its body',
}

/** Why a request whose head can be read is refused, as far as its status tells. */
function refusalText(status: number, { tls }: Call): string {
  if (status === 414) return 'client sent too long URI'
  if (status === 431) return 'client sent too large header line, or too many of them'
  if (status === 421) {
    return 'client attempted to request the server name different from the one that was negotiated'
  }
  if (status === 495 && tls instanceof ClientTls) return tls.complaint
  if (status === 496) return 'client sent no required SSL certificate'
  if (status === 497) return 'client sent plain HTTP request to HTTPS port'
  if (status === 405) return `client sent a method that is not allowed`
  return 'client sent invalid host or target'
}
