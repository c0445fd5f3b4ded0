import type { ResolverCounts } from '../../feedback/resolver-counts.ts'
import type { AskServer, DnsServer } from './exchange.ts'
import type { Question, RecordType, Reply } from './message.ts'
import { responseKind } from './response-kind.ts'

/** Who is asked, and how long is waited for each. */
export interface Asked {
  /** At least one. */
  readonly servers: readonly DnsServer[]
  /** How long a server may take at first, milliseconds; twice as long each round. */
  readonly tryMs: number
  /** How often each is asked at most. */
  readonly rounds: number
  /** Whether each question begins with the next server; the first one is always asked first otherwise. */
  readonly rotate: boolean
}

/** What asking came to. A reply has the code `NOERROR` or `NXDOMAIN`. */
export type Asking =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'failed'; readonly error: string }

/** Longest wait for one server, milliseconds. */
const longestTry = 10_000
/** Queries under way at once where nothing is said. */
const usualMost = 64

const sentKey = { A: 'a', AAAA: 'aaaa', SRV: 'srv' } as const satisfies Record<RecordType, string>

/** Asks several servers, one after the other, until one of them knows. */
export class Servers {
  readonly #ask: AskServer
  readonly #now: () => number
  readonly #counts: ResolverCounts
  readonly #most: number
  #turn = 0
  #asking = 0
  readonly #waiting: (() => void)[] = []

  /**
   * @param now monotonic milliseconds
   * @param most queries under way at once
   */
  constructor(ask: AskServer, now: () => number, counts: ResolverCounts, most = usualMost) {
    this.#most = most
    this.#ask = ask
    this.#now = now
    this.#counts = counts
  }

  /**
   * One that does not answer, or fails, leaves it to the next. What all of them fail at is not asked again at once.
   * @param endsAt monotonic milliseconds
   */
  async ask({ servers, tryMs, rounds, rotate }: Asked, question: Question, endsAt: number): Promise<Asking> {
    await this.#begin()
    try {
      const first = rotate ? this.#turn++ : 0
      let error = 'no server'
      let pause = tryMs
      for (let round = 0; round < rounds; round++, pause = Math.min(longestTry, 2 * pause)) {
        let silent = false
        for (let i = 0; i < servers.length; i++) {
          const left = endsAt - this.#now()
          if (left <= 0) return { kind: 'failed', error }
          const server = servers[(first + i) % servers.length]!
          const one = await this.#askOne(server, question, Math.min(pause, left))
          if (one.kind === 'reply') return one
          error = `${one.error} (${server.host}:${server.port})`
          silent ||= one.silent
        }
        // Their errors would be the same ones.
        if (!silent) break
      }
      return { kind: 'failed', error }
    } finally {
      this.#end()
    }
  }

  async #askOne(
    server: DnsServer,
    question: Question,
    ms: number,
  ): Promise<
    | { readonly kind: 'reply'; readonly reply: Reply }
    | { readonly kind: 'failed'; readonly error: string; readonly silent: boolean }
  > {
    const { sent, responses } = this.#counts
    sent[sentKey[question.type]] += 1
    const how = await this.#ask(server, question, ms)
    switch (how.kind) {
      case 'timeout':
        responses.timedout += 1
        return { kind: 'failed', error: 'timed out', silent: true }
      case 'error':
        responses.other += 1
        return { kind: 'failed', error: how.error, silent: false }
      case 'reply': {
        const { code } = how.reply
        responses[responseKind(code)] += 1
        if (code === 'NOERROR' || code === 'NXDOMAIN') return how
        return { kind: 'failed', error: code, silent: false }
      }
    }
  }

  async #begin(): Promise<void> {
    if (this.#asking < this.#most) {
      this.#asking += 1
      return
    }
    await new Promise<void>((go) => this.#waiting.push(go))
  }

  #end(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#asking -= 1
  }
}
