import type { FastifyInstance } from 'fastify'
import { fleetLack } from './explain-fleet.ts'
import { printable } from './explain-probes.ts'
import type { Facts } from './facts.ts'
import { sendPage, wantsPage } from './page.ts'

const list = `GET    /healthz             the process answers
GET    /readyz              requests are taken; ?upstream=NAME asks for a ready peer too
GET    /status/             the state of everything, in the shape of Angie's API
GET    /metrics             for Prometheus
GET    /metrics/angie       for Prometheus, under the names of Angie's template "all"
GET    /explain/UPSTREAM    why a request would go where it would go; ?format=text
GET    /canary/UPSTREAM     whether track canary does worse than track stable; ?format=text
GET    /config              the configuration that runs; ?format=yaml or json
GET    /live                what the page for browsers at / shows, as server-sent events
POST   /reload              read the configuration anew
GET    /upstreams           groups with their peers, and what was changed of them
GET    /upstreams/UPSTREAM  one of them
PATCH  /upstreams/UPSTREAM/peers/ADDRESS  {"state":"drain"}, "up", "down"; "weight", "max_conns"; null takes back
POST   /upstreams/UPSTREAM/peers          {"server":"10.0.0.4:80","weight":2}: one more server
DELETE /upstreams/UPSTREAM/peers/ADDRESS  one less
DELETE /upstreams/UPSTREAM/changes        all is as in the file again
`

/** `/`: the live page for browsers; for others how the program is, and what the admin server can be asked for. */
export function contents(app: FastifyInstance, facts: Facts): void {
  app.get('/', (request, reply) => {
    reply.header('vary', 'accept')
    if (wantsPage(request.headers.accept)) return sendPage(request, reply)
    const up = Math.max(0, Math.round((facts.clock.wall() - facts.startedAt) / 1000))
    const lines = [`evenkeel ${facts.version}, up for ${up} s, configuration ${facts.generation()}`]
    if (facts.draining()) lines.push('it drains: work in progress ends, and then the process does')
    const fleet = facts.fleet()
    if (fleet?.up === false) {
      const since = new Date(fleet.since).toISOString()
      lines.push(`the fleet ${printable(fleetLack(fleet))} since ${since}`)
    }
    const last = facts.lastReload()
    if (last?.ok === false) {
      lines.push(`the reload at ${new Date(last.at).toISOString()} failed: ${last.error}`)
    }
    const names = Array.from(facts.upstreams(), ({ upstream }) => upstream.name)
    lines.push(`upstreams: ${names.join(', ') || 'none'}`, '')
    return reply
      .type('text/plain')
      .header('cache-control', 'no-store')
      .send(`${lines.join('\n')}\n${list}`)
  })
}
