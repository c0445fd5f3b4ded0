import type { FastifyInstance } from 'fastify'
import { metricsTable } from '../../feedback/metrics-table.ts'
import { Exposition, type FormatName, formats, negotiate } from './exposition.ts'
import type { Facts } from './facts.ts'
import { type GroupSeries, groupSamplers, groupSeries } from './group-samples.ts'
import { peerSamplers } from './peer-samples.ts'
import { processMetrics } from './process-metrics.ts'
import { programNumbers } from './program-samples.ts'
import { shownResolvers } from './resolver-facts.ts'
import { resolverSamplers } from './resolver-samples.ts'
import { type Series, seriesOf } from './series.ts'
import { Stretch } from './stretch.ts'
import { secureZones, tlsSamples } from './tls-samples.ts'

/** `/metrics`: evenkeel's own numbers, read from the zones as they are asked for. */
export function metrics(app: FastifyInstance, facts: Facts): void {
  app.get('/metrics', async (request, reply) => {
    const format = negotiate(request.headers.accept)
    reply.header('vary', 'accept').type(formats[format])
    return reply.send(await scrape(facts, format))
  })
}

/** The whole exposition, metric by metric of the table. It gives way to other work in between. */
export async function scrape(facts: Facts, format: FormatName): Promise<string> {
  const out = new Exposition(format)
  await processMetrics(out)
  const stretch = new Stretch()
  const now = facts.clock.now()
  const fleet = facts.fleet()
  const groups: GroupSeries[] = []
  const peers: Series[] = []
  for (const group of facts.upstreams()) {
    groups.push(groupSeries(group, facts))
    peers.push(...seriesOf(group, fleet, now))
    if (stretch.over) await stretch.rest()
  }
  const resolvers = shownResolvers(facts.resolvers())
  const secure = secureZones(facts)
  for (const { name, type, help } of metricsTable) {
    out.family(name, type, help)
    const program = programNumbers.get(name)?.(facts)
    if (program !== undefined) out.sample(name, '', program)
    const resolver = resolverSamplers.get(name)
    if (resolver !== undefined) for (const one of resolvers) resolver(out, name, one)
    tlsSamples(out, name, secure)
    const group = groupSamplers.get(name)
    if (group !== undefined) for (const series of groups) group(out, name, series)
    const peer = peerSamplers.get(name)
    if (peer === undefined) continue
    for (const series of peers) {
      peer(out, name, series, now)
      if (stretch.over) await stretch.rest()
    }
  }
  return out.end()
}
