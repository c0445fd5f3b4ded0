import { setImmediate as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { denialReasons } from '../../feedback/reasons.ts'
import { Exposition, escapeLabel, type FormatName, formats, negotiate } from './exposition.ts'
import type { Facts } from './facts.ts'
import { peerFamilies } from './peer-families.ts'
import { processMetrics } from './process-metrics.ts'
import { groupMetrics, type Series, seriesOf } from './series.ts'

/** Longest stretch of building a scrape before requests get their turn, milliseconds. */
const stretchMs = 4

/** `/metrics`: evenkeel's own numbers, read from the zones as they are asked for. */
export function metrics(app: FastifyInstance, facts: Facts): void {
  app.get('/metrics', async (request, reply) => {
    const format = negotiate(request.headers.accept)
    reply.header('vary', 'accept').type(formats[format])
    return reply.send(await scrape(facts, format))
  })
}

/** The whole exposition. It gives way to other work between families of metrics. */
export async function scrape(facts: Facts, format: FormatName): Promise<string> {
  const out = new Exposition(format)
  await processMetrics(out)
  const now = facts.clock.now()
  const groups = [...facts.upstreams()]
  program(out, facts)
  let began = performance.now()
  const breathe = async () => {
    if (performance.now() - began < stretchMs) return
    await pause()
    began = performance.now()
  }
  for (const { name, type, help, read } of groupMetrics) {
    out.family(name, type, help)
    for (const { upstream } of groups) out.sample(name, groupLabels(upstream.name), read(upstream.zone))
  }
  const denials = 'evenkeel_upstream_denials_total'
  out.family(denials, 'counter', 'Times that a request got no attempt, or no further one, by reason.')
  for (const { upstream } of groups) {
    for (const [d, reason] of denialReasons.entries()) {
      const labels = `{upstream="${escapeLabel(upstream.name)}",reason="${reason}"}`
      out.sample(denials, labels, upstream.zone.denials[d]!)
    }
  }
  const all: Series[] = []
  for (const group of groups) {
    all.push(...seriesOf(group, now))
    await breathe()
  }
  for (const { name, type, help, write } of peerFamilies) {
    out.family(name, type, help)
    for (const series of all) {
      write(out, series, now)
      await breathe()
    }
  }
  return out.end()
}

function groupLabels(name: string): string {
  return `{upstream="${escapeLabel(name)}"}`
}

/** The program as a whole. */
function program(out: Exposition, facts: Facts): void {
  const { accepted, dropped, active, idle } = facts.connections()
  const last = facts.lastReload()
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number) => {
    out.family(name, type, help)
    out.sample(name, '', value)
  }
  one('evenkeel_connections_accepted_total', 'counter', 'Client connections accepted.', accepted)
  one('evenkeel_connections_dropped_total', 'counter', 'Client connections closed for a limit.', dropped)
  one('evenkeel_connections_active', 'gauge', 'Client connections with a request in progress.', active)
  one('evenkeel_connections_idle', 'gauge', 'Client connections between requests.', idle)
  one('evenkeel_ready', 'gauge', 'Whether /readyz says 200.', facts.ready() && !facts.draining() ? 1 : 0)
  one('evenkeel_config_generation', 'gauge', 'Configurations loaded since the start.', facts.generation())
  const loaded = 'evenkeel_config_loaded_timestamp_seconds'
  one(loaded, 'gauge', 'When the running configuration was loaded.', facts.loadedAt() / 1000)
  const reloaded = 'evenkeel_config_last_reload_successful'
  one(reloaded, 'gauge', 'Whether the last reload succeeded; 1 before the first.', (last?.ok ?? true) ? 1 : 0)
}
