import type { FastifyInstance } from 'fastify'
import { fleetLack } from './explain-fleet.ts'
import type { Facts, UpstreamFacts } from './facts.ts'

/**
 * `/healthz` says that the process answers; `/readyz` that it takes requests. Peers do not count for either, since
 * an orchestrator that restarts or unplugs the balancer for its peers' sake helps nobody. Who wants to know of
 * them asks with `?upstream=NAME`. The fleet counts only where it is `required`, and then only once nothing has
 * been heard for its `ttl`: a moment without Redis must not take all instances out at once.
 */
export function health(app: FastifyInstance, facts: Facts): void {
  app.get('/healthz', (_request, reply) => reply.header('cache-control', 'no-store').send({ ok: true }))
  app.get<{ Querystring: { upstream?: string | string[] } }>('/readyz', (request, reply) => {
    reply.header('cache-control', 'no-store')
    const whole = unreadiness(facts)
    if (whole !== undefined) return reply.code(503).send({ ok: false, reason: whole })
    for (const name of [request.query.upstream ?? []].flat()) {
      const group = upstreamOf(facts, name)
      if (group === undefined) return reply.code(404).send({ error: `no upstream "${name}"` })
      const reason = unready(group, facts.clock.now())
      if (reason !== undefined) return reply.code(503).send({ ok: false, reason })
    }
    return reply.send({ ok: true })
  })
}

/** Why the program is not ready, whatever its peers; undefined when it is. */
export function unreadiness(facts: Facts): string | undefined {
  if (facts.draining()) return 'draining'
  if (!facts.ready()) return 'not listening yet'
  const fleet = facts.fleet()
  if (fleet === undefined || !fleet.required) return undefined
  if (fleet.silence !== undefined && fleet.silence <= fleet.ttl) return undefined
  return `the fleet ${fleetLack(fleet)}`
}

/** Finds a group by its name, which nginx compares without case. */
export function upstreamOf(facts: Facts, name: string): UpstreamFacts | undefined {
  for (const group of facts.upstreams()) {
    if (group.upstream.name.toLowerCase() === name.toLowerCase()) return group
  }
  return undefined
}

/** Why the group could serve nobody now, peer by peer; undefined when it could. */
function unready(group: UpstreamFacts, now: number): string | undefined {
  const { name, peers, backups } = group.upstream
  const reasons: string[] = []
  for (const peer of [...peers, ...backups]) {
    const reason = group.exclusion(peer, now)
    if (reason === undefined) return undefined
    reasons.push(`${peer.name} ${reason}`)
  }
  return `no peer of upstream "${name}" is ready: ${reasons.join(', ') || 'it has none'}`
}
