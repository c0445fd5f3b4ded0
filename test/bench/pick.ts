import { spawnSync } from 'node:child_process'
import { Call } from '../../feedback/call.ts'
import { usable } from '../../feedback/health.ts'
import { learnBegin, learnEnd } from '../../feedback/learn.ts'
import { endLesson } from '../../feedback/lesson.ts'
import { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Ask, Env, Method } from '../../sidecar/balance/method.ts'
import { methods } from '../../sidecar/balance/methods.ts'
import { seeded } from '../support/dice.ts'
import { group } from '../support/peers.ts'

/** What a choice costs by method and size of the group, readiness included, and as a ratio to round robin. */

const sizes = [10, 64, 1000, 10_000]

const variants: readonly { readonly words: string; readonly args: object; readonly method: string }[] = [
  { method: 'round_robin', words: '', args: {} },
  { method: 'least_conn', words: '', args: {} },
  { method: 'random', words: '', args: {} },
  { method: 'random', words: 'two', args: { mode: 'two' } },
  { method: 'hash', words: '$request_uri', args: { key: '$request_uri' } },
  { method: 'hash', words: '$request_uri consistent', args: { key: '$request_uri', consistent: true } },
  { method: 'ip_hash', words: '', args: {} },
  { method: 'least_time', words: 'last_byte', args: { mode: 'last_byte' } },
  { method: 'least_time', words: 'last_byte best', args: { mode: 'last_byte', best: true } },
  { method: 'least_time', words: 'last_byte plain', args: { mode: 'last_byte', plain: true } },
  { method: 'feedback', words: '$load inverse', args: { variable: '$load', inverse: true } },
]

/** Milliseconds of measuring, after as much of warming up, for each figure. */
const spanMs = 250

export function run(): void {
  table()
}

/** Measures all of it, and prints each line as it is found. @returns nanoseconds by the sizes */
export function table(): { sizes: readonly number[]; rows: readonly { method: string; ns: number[] }[] } {
  console.log(`ns a pick (and as a ratio to round_robin at 10 peers), Node ${process.version}`)
  console.log(`${'peers'.padEnd(34)}${sizes.map((size) => String(size).padStart(16)).join('')}`)
  const rows: { method: string; ns: number[] }[] = []
  for (const [i, { method, words }] of variants.entries()) {
    // A process each: code that has seen one method only is what a sidecar runs.
    const { stdout, status } = spawnSync(process.execPath, [import.meta.filename, String(i)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (status !== 0) throw new Error(`bench: ${method} ended with ${status}`)
    const found = stdout.trim().split(' ').map(Number)
    rows.push({ method: `${method} ${words}`.trim(), ns: found })
    const unit = rows[0]!.ns[0]!
    const cells = found.map((ns) => `${ns.toFixed(0)} (${(ns / unit).toFixed(1)})`.padStart(16))
    console.log(`${`${method} ${words}`.padEnd(34)}${cells.join('')}`)
  }
  return { sizes, rows }
}

class BenchAsk implements Ask {
  readonly call = new Call()
  now = 1_000_000
  memo: unknown = undefined
  draws = 0
  pick = ''
  drifted = 0

  ready(peer: Peer): boolean {
    return usable(peer, false, this.now)
  }
}

/** One figure: as many requests in flight as half the peers, a hundred thousand a second, answers being learnt from. */
function measure(name: string, args: object, size: number): number {
  const random = seeded(size)
  const env: Env = { now: () => ask.now, random: Math.random }
  // Each method takes arguments of its own schema; the table above keeps to them.
  const method = methods.find((one) => one.name === name) as unknown as Method
  const ask = new BenchAsk()
  const variable = (text: string) => (call: Call) => (text === '$load' ? `${5 + (turn % 97)}` : call.target)
  const upstream = group(
    Array.from({ length: size }, () => 1),
    { method: name, learning: method.learning(args, variable) },
  )
  const { avg, answeredAt, conns, report, reportAt } = upstream.zone.peers
  for (const { index } of upstream.peers) {
    avg[index] = 5 + 100 * random()
    answeredAt[index] = ask.now - 5000 * random()
    report[index] = avg[index]!
    reportAt[index] = answeredAt[index]!
  }
  const targets = Array.from({ length: 997 }, (_, i) => `/catalogue/item-${i}`)
  const addresses = Array.from({ length: 997 }, (_, i) => `10.${i % 256}.${(i * 7) % 256}.9`)
  const balancer = method.create(upstream, upstream.peers, args, env, variable)
  const running = upstream.peers.slice(0, size >> 1).map((peer) => begin(peer))
  let turn = 0

  function begin(peer: Peer): Attempt {
    const attempt = new Attempt(upstream, peer, ask.now, '')
    conns[peer.index]! += 1
    learnBegin(attempt, ask.now)
    return attempt
  }

  function request(): Peer {
    ask.now += 0.01
    ask.memo = undefined
    ask.draws = 0
    ask.call.target = targets[turn % 997]!
    ask.call.remoteAddr = addresses[turn % 997]!
    return balancer.pick(ask)!
  }

  function end(peer: Peer): void {
    const slot = turn % running.length
    turn += 1
    const attempt = running[slot]!
    conns[attempt.peer!.index]! -= 1
    attempt.ending = 'ok'
    attempt.peerStatus = 200
    learnEnd(attempt, endLesson(attempt, ask.call, ask.now), ask.now)
    running[slot] = begin(peer)
  }

  const batch = Math.max(20, Math.round(40_000 / size))
  const deadline = performance.now() + spanMs
  while (performance.now() < deadline) for (let i = 0; i < batch; i++) end(request())
  const found: number[] = []
  const until = performance.now() + spanMs
  while (performance.now() < until || found.length < 5) {
    // Pick alone is timed, a batch of them between changes: one reading of the clock costs as much as a pick.
    const at = performance.now()
    let peer: Peer | undefined
    for (let i = 0; i < batch; i++) peer = request()
    found.push(((performance.now() - at) * 1e6) / batch)
    for (let i = 0; i < 20; i++) {
      end(peer!)
      peer = request()
    }
  }
  // The quieter quarter: what other programs take is no cost of the choice.
  return found.sort((a, b) => a - b)[found.length >> 2]!
}

if (import.meta.main) {
  const { method, args } = variants[Number(process.argv[2])]!
  console.log(sizes.map((size) => measure(method, args, size)).join(' '))
}
