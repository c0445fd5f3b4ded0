import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { connsLimit, peerState } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Facts, UpstreamFacts } from './facts.ts'
import { retiredOf } from './retired.ts'
import { type Granted, type PeerWish, peerOrders, type RuntimeFacts } from './runtime-facts.ts'
import { shownChange } from './shown-changes.ts'

/** Where a group is found; one of `stream` also by `stream/NAME` with a plain slash. */
const groups = ['/upstreams/:name', '/upstreams/stream/:stream'] as const

/**
 * `/upstreams`: the peers of groups with what was changed of them, and ways to change them. Whoever gets an answer to a
 * change has it in force.
 */
export function upstreams(app: FastifyInstance, facts: Facts): void {
  app.get('/upstreams', (_request, reply) => {
    const list = Array.from(facts.upstreams(), (group) => shownGroup(group, facts))
    return fresh(reply).send({ upstreams: list })
  })
  for (const path of groups) {
    app.get(path, (request, reply) => {
      const name = nameIn(request)
      const group = find(facts, name)
      if (group === undefined) return refuse(reply, { ok: false, status: 404, error: unknown(facts, name) })
      return fresh(reply).send(shownGroup(group, facts))
    })
    app.patch(`${path}/peers/*`, (request, reply) =>
      grant(request, reply, facts, (runtime, name, by) => {
        const wish = wishIn(request.body)
        return 'ok' in wish ? wish : runtime.change(name, addressIn(request), wish, by)
      }),
    )
    app.post(`${path}/peers`, (request, reply) =>
      grant(request, reply, facts, (runtime, name, by) => {
        const { body } = request
        return isObject(body) ? runtime.add(name, body, by) : notAnObject
      }),
    )
    app.delete(`${path}/peers/*`, (request, reply) =>
      grant(request, reply, facts, (runtime, name, by) => runtime.remove(name, addressIn(request), by)),
    )
    app.delete(`${path}/changes`, (request, reply) =>
      grant(request, reply, facts, (runtime, name, by) => runtime.reset(name, by)),
    )
    for (const [url, allowed] of [
      [path, ['GET', 'HEAD']],
      [`${path}/peers`, ['POST']],
      [`${path}/peers/*`, ['PATCH', 'DELETE']],
      [`${path}/changes`, ['DELETE']],
    ] as const) {
      const method = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
        (one) => !allowed.some((m) => m === one),
      )
      const handler = (_request: FastifyRequest, reply: FastifyReply) =>
        reply.code(405).header('allow', allowed.join(', ')).send({ error: 'method not allowed' })
      app.route({ method, url, handler, exposeHeadRoute: false })
    }
  }
}

const notAnObject = { ok: false, status: 422, error: 'the body is to be a JSON object' } as const

function isObject(body: unknown): body is Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
}

interface Params {
  readonly name?: string
  readonly stream?: string
  readonly '*'?: string
}

function nameIn({ params }: FastifyRequest): string {
  // What the paths above are made of.
  const { name, stream } = params as Params
  return name ?? `stream/${stream}`
}

function addressIn({ params }: FastifyRequest): string {
  return (params as Params)['*'] ?? ''
}

function find(facts: Facts, name: string): UpstreamFacts | undefined {
  const low = name.toLowerCase()
  for (const group of facts.upstreams()) if (group.upstream.name.toLowerCase() === low) return group
  return undefined
}

function unknown(facts: Facts, name: string): string {
  const names = Array.from(facts.upstreams(), ({ upstream }) => upstream.name)
  return `unknown upstream "${name}"; there are: ${names.join(', ') || 'none'}`
}

async function grant(
  request: FastifyRequest,
  reply: FastifyReply,
  facts: Facts,
  ask: (runtime: RuntimeFacts, name: string, by: string) => Granted | Promise<Granted>,
): Promise<FastifyReply> {
  const runtime = facts.runtime()
  if (runtime === undefined) {
    return refuse(reply, { ok: false, status: 503, error: 'groups cannot be changed here' })
  }
  const name = nameIn(request)
  const granted = await ask(runtime, name, whoAsks(request))
  if (!granted.ok) return refuse(reply, granted)
  const group = find(facts, name)
  const about = new Set(granted.peers)
  const { peers = [], changes = [] } = group === undefined ? {} : shownGroup(group, facts, about)
  return fresh(reply).send({ ok: true, changed: granted.changed, upstream: name, peers, changes })
}

/** An IPv4 address as such, also where the listener is IPv6. */
function whoAsks({ socket }: FastifyRequest): string {
  return (socket.remoteAddress ?? 'unix:').replace(/^::ffff:(?=\d+\.)/, '')
}

function fresh(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store')
}

function refuse(reply: FastifyReply, { status, error }: Granted & { ok: false }): FastifyReply {
  return fresh(reply).code(status).send({ error })
}

/** The wish that a body describes, or what is wrong with it. */
function wishIn(body: unknown): PeerWish | (Granted & { ok: false }) {
  if (!isObject(body)) return notAnObject
  const wrong = (error: string) => ({ ok: false, status: 422, error }) as const
  const wish: { -readonly [K in keyof PeerWish]: PeerWish[K] } = {}
  for (const [name, value] of Object.entries(body)) {
    if (name === 'state') {
      const state = value === null ? null : peerOrders.find((order) => order === value)
      if (state === undefined) return wrong(`"state" is one of "${peerOrders.join('", "')}", or null`)
      wish.state = state
    } else if (name === 'weight' || name === 'max_conns') {
      if (value !== null && typeof value !== 'number') {
        return wrong(`"${name}" is a number, or null: ${JSON.stringify(value)}`)
      }
      wish[name] = value
    } else return wrong(`invalid parameter "${name}"; there are "state", "weight" and "max_conns"`)
  }
  if (Object.keys(wish).length === 0)
    return wrong('nothing is asked for: give "state", "weight" or "max_conns"')
  return wish
}

/** @param about names of the peers to show, or texts of their lines; undefined: all */
function shownGroup(group: UpstreamFacts, facts: Facts, about?: ReadonlySet<string>) {
  const { upstream } = group
  const runtime = facts.runtime()
  const now = facts.clock.now()
  const retired = retiredOf(upstream)
  const peers = [...upstream.peers, ...upstream.backups, ...retired].filter(
    ({ name, server }) => about === undefined || about.has(name) || about.has(server),
  )
  return {
    name: upstream.name,
    kind: upstream.kind,
    method: upstream.method,
    zone: runtime?.zone(upstream.name),
    peers: peers.map((peer) => shownPeer(peer, retired.includes(peer), upstream.name, runtime, now)),
    changes: (runtime?.list() ?? [])
      .filter((change) => change.upstream === upstream.name)
      .map((change) => shownChange(change)),
  }
}

function shownPeer(
  peer: Peer,
  retired: boolean,
  upstream: string,
  runtime: RuntimeFacts | undefined,
  now: number,
) {
  const { name, server, options, zone, index } = peer
  const changes = retired ? [] : (runtime?.of(upstream, peer) ?? [])
  return {
    name,
    server,
    state: peerState(peer, now),
    weight: options.weight,
    max_conns: connsLimit(peer),
    backup: options.backup,
    active: zone.peers.conns[index]!,
    ...(retired ? { removed: true } : {}),
    ...(changes.length > 0 ? { changed: changes.map(({ kind }) => kind) } : {}),
  }
}
