import { chmod } from 'node:fs/promises'
import { type AddressInfo, isIPv4 } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Address } from '../../feedback/peer.ts'
import type { Answer } from './answer.ts'
import { canary } from './canary.ts'
import { contents } from './contents.ts'
import { explain } from './explain.ts'
import type { Facts } from './facts.ts'
import { type Asked, type Gate, refuseChange, refuseHost } from './guard.ts'
import { health } from './health.ts'
import { live } from './live.ts'
import { metrics } from './metrics.ts'
import { page } from './page.ts'
import { prometheusResponse } from './prometheus.ts'
import { reload } from './reload.ts'
import { running } from './running.ts'
import { clearSocket } from './socket.ts'
import { statusResponse } from './status.ts'
import { upstreams } from './upstreams.ts'

/** An `admin` line: where to listen, and whether only what changes and tells little is served there. */
export interface AdminListener {
  /** Host `*` is every IPv4 address; port 0 any free one. */
  readonly address: Address
  readonly readonly: boolean
}

export interface AdminServer {
  /** Where it listens: `127.0.0.1:9900`, `[::1]:9900`, `unix:/path`. */
  readonly addresses: readonly string[]
  /** Stops listening and lets requests in progress end, for at most a second. */
  close(): Promise<void>
}

/** No request to the admin server is large; anything bigger is a mistake or worse. */
const bodyLimit = 16 * 1024
/** How long a client may take to send its request, and how long it may be silent, milliseconds. */
const requestTimeoutMs = 10_000
const silentTimeoutMs = 60_000
const connectionLimit = 256
/** What is said of a path that is not served; a readonly address has no list to point to. */
const nothing = 'there is nothing here; "/" lists what there is'
const nothingReadonly =
  'this address is readonly: it serves /healthz, /readyz, /metrics, /status/ and /canary/UPSTREAM alone'

/**
 * Opens the admin server on all its addresses, or on none: when one cannot be opened the others are closed again.
 * @param report told of errors that are ours, a line each
 */
export async function startAdmin(
  listeners: readonly AdminListener[],
  facts: Facts,
  report: (text: string) => void = console.error,
): Promise<AdminServer> {
  const open: { app: FastifyInstance; text: string }[] = []
  const close = async () => {
    await Promise.all(open.map(({ app }) => stop(app)))
  }
  try {
    for (const { address, readonly } of listeners) {
      const app = adminApp(facts, {
        readonly,
        local: isLocal(address),
        unix: address.kind === 'unix',
        report,
      })
      open.push({ app, text: await listen(app, address) })
    }
  } catch (error) {
    await close()
    throw error
  }
  return { addresses: open.map(({ text }) => text), close }
}

/** Whether only this host can reach the address. */
function isLocal(address: Address): boolean {
  if (address.kind === 'unix') return true
  const { host } = address
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

async function listen(app: FastifyInstance, address: Address): Promise<string> {
  if (address.kind === 'unix') {
    await clearSocket(address.path)
    await app.listen({ path: address.path })
    // Whoever can open the socket can change things, so it belongs to this user alone.
    await chmod(address.path, 0o600)
    return `unix:${address.path}`
  }
  const host = address.host === '*' ? '0.0.0.0' : address.host
  await app.listen({ host, port: address.port })
  // A server that listens on a port has an address of this form.
  const bound = app.server.address() as AddressInfo
  return bound.family === 'IPv6' ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`
}

async function stop(app: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), 1000)
  await app.close()
  clearTimeout(timer)
}

/** What the admin server may be asked on one of its addresses. */
export interface AdminOptions {
  readonly readonly: boolean
  /** Whether only this host can reach it. */
  readonly local: boolean
  readonly unix: boolean
  readonly report: (text: string) => void
  /** How long a client may take to send its request, milliseconds; 10 s where undefined. */
  readonly requestTimeout?: number
}

function schemaless(): never {
  throw new Error('routes of the admin server have no schemas')
}

/** Whoever asks by hand has the prompt on a line of its own. */
function asLine(payload: unknown): string {
  return `${JSON.stringify(payload)}\n`
}

/** The admin server of one address, not listening yet. */
export function adminApp(facts: Facts, options: AdminOptions): FastifyInstance {
  const { requestTimeout = requestTimeoutMs } = options
  const app = Fastify({
    bodyLimit,
    requestTimeout,
    connectionTimeout: silentTimeoutMs,
    keepAliveTimeout: 30_000,
    forceCloseConnections: 'idle',
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 1024 },
    exposeHeadRoutes: true,
    // Slow clients are looked for this often.
    http: { headersTimeout: requestTimeout, connectionsCheckingInterval: Math.ceil(requestTimeout / 2) },
    // No route has a schema. Their compilers are two hundred modules, which would be read at each start.
    schemaController: { compilersFactory: { buildValidator: schemaless, buildSerializer: schemaless } },
    frameworkErrors(_error, _request, reply) {
      // What cannot be routed, as a path with a broken escape. The type is generic over schemas; no route has one.
      const plain = reply as unknown as FastifyReply
      return plain.code(400).send({ error: 'the path is not valid' })
    },
  })
  app.server.maxConnections = connectionLimit

  // Bodies are JSON or nothing at all.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    try {
      done(null, body === '' ? undefined : JSON.parse(String(body)))
    } catch {
      done(Object.assign(new Error('the body is not valid JSON'), { statusCode: 400 }))
    }
  })

  app.setReplySerializer(asLine)
  app.addHook('onRequest', async (request, reply) => {
    const gate: Gate = { ...options, hosts: facts.hosts(), token: facts.token() }
    const asked = askedOf(request)
    const changes = request.method !== 'GET' && request.method !== 'HEAD'
    const unknown = request.is404 || isTree(request)
    reply.header('x-content-type-options', 'nosniff')
    const refusal = refuseHost(asked, gate) ?? (changes && !unknown ? refuseChange(asked, gate) : undefined)
    if (refusal === undefined) return
    if (refusal.status === 401) reply.header('www-authenticate', 'Bearer')
    return reply.code(refusal.status).send({ error: refusal.error })
  })
  app.setNotFoundHandler((request, reply) => {
    const other = request.method === 'GET' ? 'POST' : 'GET'
    const path = request.url.split('?', 1)[0]!
    // What is not found knows nothing of the serializer above.
    reply.serializer(asLine)
    if (app.findRoute({ url: path, method: other }) !== null) {
      return reply
        .code(405)
        .header('allow', other === 'GET' ? 'GET, HEAD' : 'POST')
        .send({ error: 'method not allowed' })
    }
    return reply.code(404).send({ error: options.readonly ? nothingReadonly : nothing })
  })
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500)
      options.report(`admin: ${request.method} ${request.routeOptions.url}: ${error.message}`)
    return reply.code(status).send({ error: status >= 500 ? 'internal error' : error.message })
  })

  health(app, facts)
  metrics(app, facts)
  const status = (request: FastifyRequest, reply: FastifyReply) => carry(statusOf(request, facts), reply)
  for (const url of ['/status', '/status/*']) app.all(url, status)
  canary(app, facts)
  if (options.readonly) return app
  contents(app, facts)
  page(app)
  live(app, facts)
  explain(app, facts)
  running(app, facts)
  reload(app, facts)
  upstreams(app, facts)
  app.get('/metrics/angie', async (request, reply) =>
    carry(await prometheusResponse(facts, 'all', request.method), reply),
  )
  return app
}

function isTree(request: FastifyRequest): boolean {
  return request.routeOptions.url?.startsWith('/status') === true
}

function askedOf({ headers }: FastifyRequest): Asked {
  return {
    host: headers.host,
    origin: headers.origin,
    contentType: headers['content-type'],
    authorization: headers.authorization,
  }
}

/** The status tree speaks of errors as Angie's API does, wrong methods included. */
function statusOf(request: FastifyRequest, facts: Facts): Answer {
  const [target = '', query = ''] = split(request.url)
  let path = target
  try {
    path = decodeURIComponent(target)
  } catch {
    // A name that is no UTF-8 is no name in the tree.
  }
  return statusResponse(facts, path, query, request.method, request.socket.localAddress ?? 'unix:')
}

function split(url: string): [string, string] {
  const mark = url.indexOf('?')
  return mark < 0 ? [url, ''] : [url.slice(0, mark), url.slice(mark + 1)]
}

function carry(answer: Answer, reply: FastifyReply): FastifyReply {
  return reply.code(answer.status).headers(answer.headers).send(answer.body)
}
