import type { Exchange, Script } from './backend.ts'
import { ask } from './client.ts'
import type { Sidecar } from './sidecar.ts'

/** A peer's script: answers clients with a letter, and probes at `/health` with what a test sets. */
export class Checked {
  readonly letter: string
  /** Status for probes. */
  status = 200
  /** While true, probes wait for `answer`. */
  held = false
  /** Probes that came. */
  probes = 0
  /** Requests of clients that came. */
  requests = 0
  readonly #waiting: ((status: number) => Promise<void>)[] = []
  #came: (() => void) | undefined

  constructor(letter: string) {
    this.letter = letter
  }

  readonly script: Script = (exchange) => {
    if (!exchange.target.startsWith('/health')) {
      this.requests += 1
      return exchange.reply({ body: this.letter })
    }
    this.probes += 1
    if (!this.held) return exchange.reply({ status: this.status, body: 'health' })
    return this.#hold(exchange)
  }

  /** Settles once it has been answered, or has no need of that any more. */
  #hold(exchange: Exchange): Promise<void> {
    return new Promise((resolve) => {
      const answer = async (status: number) => {
        await exchange.reply({ status, body: 'health' })
        resolve()
      }
      this.#waiting.push(answer)
      this.#came?.()
      void exchange.gone.then(() => {
        const at = this.#waiting.indexOf(answer)
        if (at >= 0) this.#waiting.splice(at, 1)
        resolve()
      })
    })
  }

  /** Answers the next probe, which it waits for, with a status. */
  async answer(status: number): Promise<void> {
    while (this.#waiting.length === 0) {
      await new Promise<void>((resolve) => {
        this.#came = resolve
      })
    }
    await this.#waiting.shift()!(status)
  }
}

/** Asks one after another and says who answered, by the body; another status stands in brackets. */
export async function letters(sidecar: Sidecar, count: number, target = '/'): Promise<string> {
  let said = ''
  for (let i = 0; i < count; i++) {
    const reply = await ask(sidecar.port, target)
    said += reply.status === 200 ? reply.text : `(${reply.status})`
  }
  return said
}

/** What tests read of a probed peer in the status tree. */
export interface ProbedPeer {
  readonly state: string
  readonly selected: { readonly total: number }
  readonly health: { readonly probes: { readonly count: number; readonly fails: number } }
}

/** The peers of a group, in order. */
export async function probedPeers(sidecar: Sidecar, group = 'backend'): Promise<ProbedPeer[]> {
  return Object.values(
    await sidecar.json<Record<string, ProbedPeer>>(`/status/http/upstreams/${group}/peers/`),
  )
}

/** The states of the peers of a group, in order. */
export async function states(sidecar: Sidecar, group = 'backend'): Promise<string> {
  return (await probedPeers(sidecar, group)).map(({ state }) => state).join(' ')
}
