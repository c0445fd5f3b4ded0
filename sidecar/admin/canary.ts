import { setImmediate as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { comparing } from '../../feedback/compare.ts'
import type { FleetSamples } from '../../feedback/fleet/facts.ts'
import { type Part, pool } from '../../feedback/pooled.ts'
import { type Minute, reservoirMinutes } from '../../feedback/reservoir.ts'
import { sampled } from '../../feedback/sampled.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { judge } from '../../feedback/verdict.ts'
import { type CanaryAnswer, canaryAnswer, type Note, type Window } from './canary-answer.ts'
import { BadQuery, type CanaryQuery, readQuery } from './canary-query.ts'
import type { Facts } from './facts.ts'
import { upstreamOf } from './health.ts'

/**
 * Times that are compared on either side: with more the interval is less than two percent wide either way, and comparing
 * them takes longer than requests should have to wait.
 */
const mostTimes = 10_000
const minuteMs = 60_000

/**
 * `/canary/UPSTREAM`: whether one track of a group does worse than another. A track without traffic, or without peers,
 * is no mistake of whoever asks: the answer is `inconclusive`.
 */
export function canary(app: FastifyInstance, facts: Facts): void {
  app.get<{ Params: { '*': string }; Querystring: Record<string, unknown> }>(
    '/canary/*',
    async (request, reply) => {
      const name = request.params['*']
      reply.header('cache-control', 'no-store')
      const group = upstreamOf(facts, name)
      if (group === undefined) {
        const upstreams = Array.from(facts.upstreams(), ({ upstream }) => upstream.name)
        return reply.code(404).send({ error: `no upstream "${name}"`, upstreams })
      }
      let query: CanaryQuery
      try {
        query = readQuery(request.query)
      } catch (error) {
        if (!(error instanceof BadQuery)) throw error
        reply.code(400)
        // Whoever asked for text gets it, whatever else was wrong.
        if (request.query['format'] === 'text') return reply.type('text/plain').send(`${error.message}\n`)
        return reply.send({ error: error.message })
      }
      const answer = await compareTracks(group.upstream, query, facts)
      return query.format === 'text' ? reply.type('text/plain').send(answer.text) : reply.send(answer)
    },
  )
}

/** Compares two tracks of a group. It gives way to other work in between. */
async function compareTracks(
  upstream: Upstream,
  query: CanaryQuery,
  facts: Pick<Facts, 'clock' | 'fleet'>,
): Promise<CanaryAnswer> {
  const tracks = [query.baseline, query.canary] as const
  const wall = facts.clock.wall()
  // Every minute of which a part lies in the window, the current one too.
  const to = Math.floor(wall / minuteMs)
  const from = Math.max(to - reservoirMinutes + 1, Math.floor((wall - query.window) / minuteMs))
  const fleet = query.scope === 'fleet' ? facts.fleet() : undefined
  const others = await fleet?.samples(upstream, tracks, from, to)
  const minutes = (track: string) => [
    ...sampled(upstream, track, from, to),
    ...(others?.parts.get(track) ?? []),
  ]
  const { baseline, canary, sides, comparison } = await alone(async () => {
    const [baseline, canary] = [minutes(query.baseline), minutes(query.canary)]
    const sides = { baseline: await pooled(baseline), canary: await pooled(canary) }
    const turns = comparing(sides.baseline, sides.canary)
    let turn = turns.next()
    while (!turn.done) {
      await pause()
      turn = turns.next()
    }
    return { baseline, canary, sides, comparison: turn.value }
  })
  const { errors, latency } = comparison
  const heard = others !== undefined && (others.lack === undefined || others.instances > 0)
  return canaryAnswer({
    upstream: upstream.name,
    query,
    scope: heard ? 'fleet' : 'instance',
    instances: 1 + (others?.instances ?? 0),
    window: windowOf(query.window, from, wall, [...baseline, ...canary]),
    sides,
    errors,
    latency,
    judgement: judge(sides, comparison, query, query),
    notes: [
      ...missing(upstream, tracks),
      { about: 'samples', finding: 'note', text: `samples: ${whose(upstream, query, facts, others)}` },
    ],
  })
}

let last: Promise<unknown> = Promise.resolve()

/** Does work when that which came before is over: several comparisons would each take a turn before others get theirs. */
function alone<T>(work: () => Promise<T>): Promise<T> {
  const result = last.then(work)
  last = result.catch(() => {})
  return result
}

async function pooled(parts: readonly Part[]): Promise<ReturnType<typeof pool>> {
  await pause()
  return pool(parts, mostTimes, Math.random)
}

function windowOf(asked: number, from: number, wall: number, minutes: readonly Minute[]): Window {
  const first = minutes.reduce((least, { minute }) => Math.min(least, minute), Number.POSITIVE_INFINITY)
  const covered = minutes.length === 0 ? 0 : wall - first * minuteMs
  return {
    asked: asked / 1000,
    covered: Math.round(covered / 1000),
    from: new Date(from * minuteMs).toISOString(),
    to: new Date(wall).toISOString(),
  }
}

/** Tracks that no peer of the group has: as before a canary is rolled out, or where a label is misspelt. */
function missing({ tracks }: Upstream, wanted: readonly string[]): Note[] {
  const names = [...tracks.keys()].join(', ') || 'none'
  return wanted
    .filter((track) => !tracks.has(track))
    .map((track) => ({
      about: 'tracks',
      finding: 'note',
      text: `tracks: no peer here has track "${track}"; there are: ${names}`,
    }))
}

/** Where the samples come from, for people. */
function whose(
  upstream: Upstream,
  query: CanaryQuery,
  facts: Pick<Facts, 'fleet'>,
  others: FleetSamples | undefined,
): string {
  const own = 'of this instance alone'
  if (query.scope === 'instance') return own
  if (others === undefined) return `${own}, which shares the group with no other`
  const { instances, lack } = others
  const members = facts.fleet()?.upstream(upstream)?.members ?? 0
  const known = members > 0 ? `; ${members} share the group now` : ''
  const count = `of ${1 + instances} ${instances === 0 ? 'instance' : 'instances'}${known}`
  if (lack === undefined) return count
  return `${instances === 0 ? own : count}; of the others not all could be asked: ${lack}`
}
