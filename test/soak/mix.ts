import { setTimeout as sleep } from 'node:timers/promises'
import { groups, mostBody, mostReplayed } from './configuration.ts'
import type { Mood } from './deed.ts'
import type { Flow } from './judge.ts'
import type { Town } from './visitor.ts'
import { Visitor } from './visitor.ts'

type Dice = () => number

/** One thing that clients do; `weight` says how often, of the sum of all. */
interface Errand {
  readonly weight: number
  /** It takes seconds. */
  readonly long?: boolean
  run(visitor: Visitor, dice: Dice): Promise<void>
}

const retried = (name: string): Flow => ({ name, retried: true })
const once = (name: string): Flow => ({ name, retried: false })

const pick = <T>(dice: Dice, list: readonly T[]): T => list[Math.floor(dice() * list.length)]!
const between = (dice: Dice, least: number, most: number) => Math.floor(least + dice() * (most - least))
const place = (dice: Dice) => `/${pick(dice, groups)}/`
const framings = ['length', 'chunked', 'close']

/** Faults that a request asks its peer for, where none is repeated. */
const faults: readonly Mood[] = [
  'status_500',
  'status_503',
  'reset',
  'close',
  'garbage',
  'huge_head',
  'cut',
  'short',
]

/** All that clients do. */
const errands: readonly Errand[] = [
  // Small answers over kept connections, the bulk of it.
  {
    weight: 30,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('get'),
        place: place(dice),
        query: { len: between(dice, 0, 3000), as: pick(dice, framings), after: between(dice, 0, 10) },
      }),
  },
  {
    weight: 6,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('get with trailers and hints'),
        place: place(dice),
        query: { len: between(dice, 1, 3000), as: 'chunked', hint: 1, status: pick(dice, [200, 204, 404]) },
        headers: { TE: 'trailers' },
      }),
  },
  {
    weight: 4,
    run: (visitor, dice) =>
      visitor.ask({ flow: retried('head'), place: place(dice), method: 'HEAD', query: { len: 1000 } }),
  },
  {
    weight: 4,
    run: (visitor) => visitor.ask({ flow: { ...retried('own'), own: 200 }, place: '/own/' }),
  },
  // Sessions that stay, peers by a name that moves, and a line that is waited in.
  {
    weight: 8,
    run: (visitor, dice) =>
      visitor.ask({ flow: retried('session'), place: '/stick/', query: { len: between(dice, 0, 3000) } }),
  },
  {
    weight: 1,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('a session that nobody knows'),
        place: dice() < 0.5 ? '/stick/' : '/learn/',
        headers: {
          Cookie: `peer=${String.fromCharCode(33 + Math.floor(dice() * 90)).repeat(between(dice, 1, 200))}`,
        },
      }),
  },
  {
    weight: 6,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('a name that moves'),
        place: '/followed/',
        query: { len: between(dice, 0, 3000), after: between(dice, 0, 30) },
      }),
  },
  {
    weight: 4,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('waits in line'),
        place: '/line/',
        query: { after: between(dice, 20, 200) },
      }),
  },
  {
    weight: 2,
    run: (visitor) =>
      visitor.ask({
        flow: retried('leaves the line'),
        place: '/line/',
        query: { after: 200 },
        leave: 'soon',
      }),
  },
  // Bodies of requests: a POST that has been sent is not repeated, a PUT is while it is kept.
  {
    weight: 8,
    run: (visitor, dice) =>
      visitor.ask({
        flow: once('post'),
        place: place(dice),
        method: 'POST',
        size: between(dice, 0, 20_000),
        chunked: dice() < 0.5,
      }),
  },
  {
    weight: 5,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('put'),
        place: place(dice),
        method: 'PUT',
        size: between(dice, 0, mostReplayed),
        chunked: dice() < 0.5,
      }),
  },
  {
    weight: 2,
    long: true,
    run: (visitor, dice) =>
      visitor.ask({
        flow: once('large post'),
        place: dice() < 0.5 ? '/direct/' : place(dice),
        method: 'POST',
        size: between(dice, 100_000, mostBody),
        chunked: dice() < 0.5,
      }),
  },
  {
    weight: 1,
    long: true,
    run: (visitor, dice) =>
      visitor.ask({
        flow: once('slow post'),
        place: dice() < 0.5 ? '/direct/' : '/calm/',
        method: 'POST',
        size: between(dice, 50_000, 150_000),
        sendPace: 60,
        chunked: dice() < 0.5,
      }),
  },
  {
    weight: 0.5,
    run: (visitor) =>
      visitor.ask({
        flow: { ...once('too large a post'), own: 413 },
        place: '/calm/',
        method: 'POST',
        size: mostBody + 1,
        once: true,
      }),
  },
  // Downloads, read at once or slowly.
  {
    weight: 1.5,
    long: true,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('download'),
        place: dice() < 0.3 ? '/direct/' : place(dice),
        query: { len: between(dice, 500_000, 4_000_000), as: pick(dice, framings) },
      }),
  },
  {
    weight: 1,
    long: true,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('slow download'),
        place: dice() < 0.3 ? '/direct/' : place(dice),
        query: { len: between(dice, 1_000_000, 4_000_000) },
        readPace: between(dice, 20, 60),
      }),
  },
  {
    weight: 1,
    long: true,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('events'),
        place: dice() < 0.5 ? '/direct/' : '/calm/',
        query: { len: 50 * between(dice, 5, 40), as: 'chunked', events: 1, pace: 50 },
      }),
  },
  // Clients that leave.
  {
    weight: 2,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('leaves while it waits'),
        place: '/calm/',
        query: { after: 400 },
        leave: 'waiting',
        ...(dice() < 0.5 ? {} : { method: 'POST', size: 5000 }),
      }),
  },
  {
    weight: 1,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('leaves as it reads'),
        place: dice() < 0.5 ? '/direct/' : '/calm/',
        query: { len: between(dice, 200_000, 3_000_000), as: pick(dice, framings) },
        leave: 'reading',
      }),
  },
  {
    weight: 1,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('leaves as it sends'),
        place: dice() < 0.5 ? '/direct/' : '/calm/',
        method: 'POST',
        size: between(dice, 20_000, 200_000),
        chunked: dice() < 0.5,
        leave: 'sending',
      }),
  },
  {
    weight: 1,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('leaves in the head'),
        place: place(dice),
        leave: 'head',
      }),
  },
  { weight: 1, run: (visitor, dice) => visitor.knock(dice() < 0.5 ? '' : 'GET /x') },
  // Other ways to use a connection.
  {
    weight: 2,
    run: (visitor, dice) =>
      visitor.ask({
        flow: retried('http/1.0'),
        place: place(dice),
        version: '1.0',
        query: { len: between(dice, 1, 5000), as: pick(dice, framings) },
      }),
  },
  {
    weight: 3,
    run: (visitor, dice) =>
      visitor.ask({ flow: retried('one request a connection'), place: place(dice), once: true }),
  },
  {
    weight: 1.5,
    run: (visitor, dice) =>
      visitor.pipeline(
        Array.from({ length: between(dice, 2, 12) }, () => ({
          flow: retried('pipelined'),
          place: '/calm/',
          query: { len: between(dice, 0, 5000), after: between(dice, 0, 5) },
        })),
      ),
  },
  {
    weight: 0.7,
    long: true,
    run: (visitor, dice) => visitor.tunnel(once('tunnel'), between(dice, 2, 20), between(dice, 10, 150)),
  },
  // Faults that no other peer makes good.
  {
    weight: 3,
    run: (visitor, dice) =>
      visitor.ask({
        flow: once('fault'),
        place: '/raw/',
        query: { fault: pick(dice, faults), len: 2000, as: pick(dice, framings) },
      }),
  },
  {
    weight: 2,
    run: (visitor, dice) =>
      visitor.ask({
        flow: { ...once('error page'), page: true },
        place: '/page/',
        query: { fault: pick(dice, faults), len: 2000, as: pick(dice, framings) },
      }),
  },
  {
    weight: 0.3,
    long: true,
    run: (visitor) => visitor.ask({ flow: once('stall'), place: '/raw/', query: { fault: 'stall' } }),
  },
]

function draw(dice: Dice, some: readonly Errand[]): Errand {
  let at = dice() * some.reduce((sum, { weight }) => sum + weight, 0)
  for (const errand of some) {
    at -= errand.weight
    if (at < 0) return errand
  }
  return some[0]!
}

/**
 * One client that does one thing after the other until it is told that it is over.
 * @param restMs between two of them, on average
 * @param long whether it does what takes seconds, too
 */
export async function wander(
  town: Town,
  dice: Dice,
  over: () => boolean,
  { restMs, long }: { restMs: number; long: boolean },
): Promise<void> {
  const some = errands.filter((errand) => long || !errand.long)
  const visitor = new Visitor(town)
  while (!over()) {
    await draw(dice, some).run(visitor, dice)
    if (restMs > 0) await sleep(dice() * 2 * restMs)
  }
  visitor.close()
}
