import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Lab } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { answersIn, type Got, runClient } from './client.ts'
import { judge } from './judge.ts'
import { type Claim, type Desk, FuzzPeer, type Seen } from './peer.ts'
import { keyOf, meaning, type Plan, scriptOf, sure, variantOf } from './plan.ts'
import type { StrictRequest } from './strict.ts'
import { configuration } from './variants.ts'

/** What is put to the test: something that carries requests from its ports to the peers. */
export interface Subject {
  /** The port for a word such as `PORT2`. */
  port(word: string): number
  /** What is wrong with it after the clients of these have gone. */
  settle(outcomes: readonly Outcome[]): Promise<string[]>
  stop(): Promise<void>
}

/** What came of a case. */
export interface Outcome {
  readonly plan: Plan
  readonly got: Got
  readonly seen: readonly (readonly Seen[])[]
  readonly faults: readonly string[]
}

/** Two scripted peers, a subject in front of them, and who has sent what at the moment. */
export class Arena implements Desk {
  readonly peers: readonly [FuzzPeer, FuzzPeer] = [new FuzzPeer(this), new FuzzPeer(this)]
  /** Complaints of peers that belong to no case. */
  complaints: string[] = []
  #subject: Subject | undefined = undefined
  readonly #claims = new Map<string, Claim>()

  /** @param make makes the subject, in front of peers on these ports */
  static async open(make: (peers: readonly number[]) => Promise<Subject>): Promise<Arena> {
    const arena = new Arena()
    const ports = [await arena.peers[0].listen(), await arena.peers[1].listen()]
    try {
      arena.#subject = await make(ports)
    } catch (error) {
      for (const peer of arena.peers) peer.close()
      throw error
    }
    return arena
  }

  get subject(): Subject {
    if (!this.#subject) throw new Error('nothing to test')
    return this.#subject
  }

  claim(key: string): Claim | undefined {
    return this.#claims.get(key)
  }

  complain(text: string): void {
    this.complaints.push(text)
  }

  /** Runs one case to its end. */
  async run(plan: Plan): Promise<Outcome> {
    const { requests } = meaning(plan)
    const seen: Seen[][] = requests.map(() => [])
    const keys = requests.map(keyOf)
    for (const key of new Set(keys)) {
      // The same target several times, as mutations make it: those that come are the first ones, in turn.
      const places = keys.flatMap((one, i) => (one === key ? [i] : []))
      this.#claims.set(key, {
        take: (request) => {
          const i = placeOf(places, seen, request, requests)
          const attempt = seen[i]!.length
          return { attempt, script: scriptOf(plan, i, attempt), seen: seen[i]! }
        },
      })
    }
    const got = await runClient(plan, this.subject.port(variantOf(plan).port))
    // A request that the client has given up may still be on its way to a peer.
    await sleep(plan.ending === 'wait' ? 0 : 30)
    const outcome = { plan, got, seen, faults: judge(plan, got, seen) }
    setTimeout(() => {
      for (const key of keys) this.#claims.delete(key)
    }, 5000).unref()
    return outcome
  }

  /** Ends what connections peers hold, and asks whether everything has come to rest. */
  async settle(outcomes: readonly Outcome[]): Promise<string[]> {
    for (const peer of this.peers) peer.hangUp()
    const faults = [...this.complaints, ...(await this.subject.settle(outcomes))]
    this.complaints = []
    return faults
  }

  async close(): Promise<void> {
    for (const peer of this.peers) peer.close()
    await this.#subject?.stop()
  }
}

/** Which of several requests with the same target one is: that in progress, or the next. */
function placeOf(
  places: readonly number[],
  seen: readonly (readonly Seen[])[],
  request: StrictRequest,
  requests: readonly StrictRequest[],
): number {
  const fits = (i: number) => {
    const { method, body } = requests[i]!
    return method === request.method && body.subarray(0, request.body.length).equals(request.body)
  }
  const fresh = places.find((i) => seen[i]!.length === 0 && fits(i))
  const taken = places.filter((i) => seen[i]!.length > 0)
  return fresh ?? taken.at(-1) ?? places[0]!
}

/** The real program with every variant of its configuration. */
export async function program(peers: readonly number[], threads: number): Promise<Subject> {
  return new Program(await start(configuration(peers, threads)))
}

class Program implements Subject {
  readonly #sidecar: Sidecar
  readonly #lab: Lab
  /** Lines of the access log that have been looked at. */
  #lines = 0
  /** Descriptors that it had after the first batch. */
  #descriptors: number | undefined = undefined

  constructor(sidecar: Sidecar) {
    this.#sidecar = sidecar
    this.#lab = new Lab(sidecar, [])
  }

  port(word: string): number {
    return this.#sidecar.ports[word]!
  }

  async settle(outcomes: readonly Outcome[]): Promise<string[]> {
    const faults: string[] = []
    if (!this.#sidecar.running) return [`the program has ended:\n${this.#sidecar.stderr.slice(-3000)}`]
    await this.#lab.idle().catch((error: Error) => faults.push(error.message))
    const alarms = this.#sidecar.stderr
      .split('\n')
      .filter((line) => /\[(?:alert|emerg|crit)\]|Unhandled|Warning|^\s+at /.test(line))
    if (alarms.length > 0) faults.push(`the error log has ${alarms.slice(-20).join('\n')}`)
    faults.push(...(await this.#logged(outcomes)), ...(await this.#held()))
    return faults
  }

  async stop(): Promise<void> {
    await this.#sidecar.stop()
  }

  /** Each request has its line in the access log, and nothing else has one. */
  async #logged(outcomes: readonly Outcome[]): Promise<string[]> {
    let least = 0
    let most = 0
    const wanted = new Map<string, number>()
    for (const { plan, got } of outcomes) {
      const { requests } = meaning(plan)
      const answers = answersIn(got.bytes, requests, got.ended)
      least += answers.filter(({ status }) => status > 0).length
      // What is refused for its target has an end that is known, and more may follow it.
      most += Math.max(requests.length, answers.length) + 1
      for (const [i] of answers.entries()) {
        const request = requests[i]
        // What ran into a short time-out is recorded without what it was going to be.
        if (!request || i >= sure(plan) || !variantOf(plan).patient) continue
        const line = `${keyOf(request)} HTTP/${request.version}`
        wanted.set(line, (wanted.get(line) ?? 0) + 1)
      }
    }
    const end = performance.now() + 3000
    for (;;) {
      const text = await readFile(join(this.#sidecar.folder, 'access.log'), 'latin1').catch(() => '')
      const lines = text.split('\n').slice(this.#lines, -1)
      const written = new Map<string, number>()
      for (const line of lines) {
        const request = line.split('|').slice(2).join('|')
        written.set(request, (written.get(request) ?? 0) + 1)
      }
      const wrong = [...wanted].filter(([line, count]) => written.get(plainLog(line)) !== count)
      const counted = lines.length >= least && lines.length <= most
      if ((wrong.length > 0 || !counted) && performance.now() < end) {
        await sleep(20)
        continue
      }
      this.#lines += lines.length
      return [
        ...(counted ? [] : [`${lines.length} lines in the access log for ${least} to ${most} requests`]),
        ...wrong
          .slice(0, 3)
          .map(([line, count]) => `${written.get(plainLog(line)) ?? 0} lines for ${count} times ${line}`),
      ]
    }
  }

  /** No more descriptors than before. */
  async #held(): Promise<string[]> {
    const count = async () => (await readdir(`/proc/${this.#sidecar.pid}/fd`)).length
    const end = performance.now() + 3000
    let now = await count()
    if (this.#descriptors === undefined) {
      await sleep(300)
      this.#descriptors = (await count()) + 2
      return []
    }
    while (now > this.#descriptors && performance.now() < end) {
      await sleep(20)
      now = await count()
    }
    return now > this.#descriptors
      ? [`${now} descriptors are open, ${this.#descriptors - 2} were before`]
      : []
  }
}

/** A request line as the log writes it. */
function plainLog(line: string): string {
  return line.replace(/["\\\x00-\x1f\x7f-\xff]/g, (byte) => {
    return `\\x${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}
