import type { Call } from '../feedback/call.ts'
import type { Facts } from './admin/facts.ts'
import { prometheusResponse } from './admin/prometheus.ts'
import { apiPath, statusResponse } from './admin/status.ts'
import { awayFrom } from './away.ts'
import { Drops } from './balance/drops.ts'
import { Queues } from './build/queues.ts'
import type { Running } from './build/running.ts'
import { timeMs } from './config/units.ts'
import { mostConnections } from './limits.ts'
import { both, type Listens } from './listens.ts'
import { stackOf } from './mistake.ts'
import type { Sharing } from './net/sharing.ts'
import { Clients } from './proxy/clients.ts'
import { Serving } from './proxy/serving.ts'
import { Tunnels } from './proxy/upgrade.ts'
import { Sessions, type StreamNews } from './stream/sessions.ts'
import { UdpListeners } from './stream/udp.ts'
import { errorLog } from './telemetry/error-log.ts'
import { escapeText } from './telemetry/log-format.ts'

/** A warning that a flood would repeat is written once in so many milliseconds. */
const repeatMs = 60_000

/** What serves clients in one thread: listeners, the routes in force, tunnels. */
export class Service {
  readonly #tunnels: Tunnels
  readonly #drops = new Drops()
  readonly #serving: Serving
  readonly #clients: Clients
  readonly #sessions: Sessions
  readonly #udp: UdpListeners
  readonly #queues = new Queues()
  /** What is listened on. */
  #open: Listens = { http: [], stream: [], udp: [] }
  #fullAt = Number.NEGATIVE_INFINITY

  /** @param facts what `api` and `prometheus` in a location show */
  constructor(running: Running, facts: Facts, sharing: Sharing) {
    const { own } = sharing.tally
    this.#tunnels = new Tunnels(own)
    this.#serving = new Serving(
      running.router,
      {
        tunnels: this.#tunnels,
        drops: this.#drops,
        status: (call, path, location) =>
          statusResponse(facts, apiPath(path, location, call.uri), call.args, call.method, call.serverAddr),
        prometheus: (template, method) => prometheusResponse(facts, template, method),
        complain: (call, text) => errorLog.log('error', lineOf(call, text)),
        note: (call, text) => errorLog.log('info', lineOf(call, text)),
        broken: (error) => errorLog.log('alert', stackOf(error)),
      },
      own,
    )
    const most = mostConnections(sharing.threads)
    this.#clients = new Clients(this.#serving, sharing, most, () => this.#full(sharing))
    const news: StreamNews = {
      complain: (call, text) => errorLog.log('error', sessionLine(call, text)),
      note: (call, text) => errorLog.log('info', sessionLine(call, text)),
      dropped: () => this.#full(sharing),
    }
    this.#sessions = new Sessions(sharing, most, news, this.#drops)
    this.#udp = new UdpListeners(sharing, most, news, this.#drops)
  }

  /**
   * Listens on these addresses and no others. Requests on new ones wait until `use` brings their routes.
   * @throws ListenError; then everything stays as it was
   */
  async listen(listens: Listens): Promise<void> {
    const before = this.#open
    try {
      // All new ones first: what has been given up for one that fails would have to be got back.
      await this.#apply(both(before, listens))
    } catch (error) {
      await this.#apply(before)
      throw error
    }
    this.#handOver(listens)
    await this.#apply(listens)
    this.#open = listens
  }

  /** An address that goes from `http` to `stream`, or back, takes its socket with it: nobody who comes there is lost. */
  #handOver({ http, stream }: Listens): void {
    const clients = this.#clients.addresses
    const sessions = this.#sessions.addresses
    for (const bind of stream) {
      const server = clients.release(bind.key)
      if (server) sessions.adopt(bind, server)
    }
    for (const spec of http) {
      const server = sessions.release(spec.key)
      if (server) clients.adopt(spec, server)
    }
  }

  async #apply({ http, stream, udp }: Listens): Promise<void> {
    await this.#clients.addresses.apply(http)
    await this.#sessions.addresses.apply(stream)
    await this.#udp.apply(udp)
  }

  /**
   * Serves by these routes from now on. Tunnels to peers that a reload takes away have as long as a drain would give
   * them; those to peers that have left of themselves go on, as they do with nginx, unless `proxy_connection_drop` ends them.
   */
  use(running: Running): void {
    this.#serving.use(running.router)
    this.#queues.use(running.groups)
    this.#sessions.use(running.streams.tcp)
    this.#udp.use(running.streams.udp)
    this.#drops.use(awayFrom(running.groups.values()), !running.refreshed)
    if (running.refreshed) return
    const gone = running.leaving.flatMap(({ peers }) => peers)
    const graceMs = timeMs(running.model.drain_timeout ?? '30s') ?? 30_000
    this.#tunnels.endOf(gone, graceMs)
    this.#sessions.endOf(gone, graceMs)
    this.#udp.endOf(gone, graceMs)
  }

  /** From now on each response is its connection's last. */
  begin(): void {
    this.#clients.drain()
  }

  /** Accepts no more connections. */
  close(): void {
    this.#clients.addresses.stop()
    this.#sessions.addresses.stop()
    this.#udp.stopListening()
  }

  closeIdle(): void {
    this.#clients.closeIdle()
    this.#udp.closeIdle()
  }

  /** Ends sessions too. */
  endTunnels(): void {
    this.#tunnels.end()
    this.#sessions.end()
    this.#udp.end()
  }

  destroy(): void {
    this.#clients.destroy()
    this.#sessions.destroy()
    this.#udp.destroy()
  }

  /** A connection was closed as it came. */
  #full({ tally }: Sharing): void {
    const now = performance.now()
    if (now - this.#fullAt < repeatMs) return
    this.#fullAt = now
    errorLog.log('crit', `${tally.all().open} connections are open, new ones are closed at once`)
  }
}

/** A line of the error log about a request, as nginx writes them. */
function lineOf(
  { connection, remoteAddr, serverName, method, target, httpVersion }: Call,
  text: string,
): string {
  const line = `*${connection} ${text}, client: ${remoteAddr}, server: ${serverName}`
  return method === '' ? line : `${line}, request: "${escapeText(`${method} ${target} HTTP/${httpVersion}`)}"`
}

/** The same about a session. */
function sessionLine({ connection, remoteAddr, serverName }: Call, text: string): string {
  return `*${connection} ${text}, client: ${remoteAddr}, server: ${serverName}`
}
