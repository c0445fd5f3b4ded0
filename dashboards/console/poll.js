/*
 * Asking the program something over and over, as long as somebody looks at the answer.
 */

/** How often, milliseconds, where it is not said. */
const usualMs = 2000
/** How long an answer may take. */
const patienceMs = 5000

/** Whether there is a link to the program: while there is none, nobody is asked. */
let linked = false

/** @param {boolean} up */
export function setLinked(up) {
  linked = up
}

/**
 * Asks once.
 * @param {string} url of this server
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>} JSON; the caller knows what that path answers
 */
export async function ask(url, signal) {
  const limit = AbortSignal.timeout(patienceMs)
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    cache: 'no-store',
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
  })
  const answer = await response.json()
  if (!response.ok) throw new Refused(response.status, typeof answer.error === 'string' ? answer.error : '')
  return answer
}

/** What the program said instead of an answer. */
class Refused extends Error {
  status

  /**
   * @param {number} status
   * @param {string} text
   */
  constructor(status, text) {
    super(text || `status ${status}`)
    this.status = status
  }
}

/**
 * What to say of an error.
 * @param {unknown} error
 */
export function failing(error) {
  return error instanceof Refused ? error.message : 'no answer'
}

export class Poll {
  #url
  #take
  #fail
  #everyMs
  /** @type {AbortController | undefined} */
  #running

  /**
   * @param {string} url
   * @param {(answer: any) => void} take
   * @param {(error: unknown) => void} fail
   * @param {number} [everyMs]
   */
  constructor(url, take, fail, everyMs = usualMs) {
    this.#url = url
    this.#take = take
    this.#fail = fail
    this.#everyMs = everyMs
  }

  start() {
    if (this.#running !== undefined) return
    this.#running = new AbortController()
    void this.#run(this.#running.signal)
  }

  stop() {
    this.#running?.abort()
    this.#running = undefined
  }

  /** Asks at once. */
  again() {
    if (this.#running === undefined) return
    this.stop()
    this.start()
  }

  /** @param {AbortSignal} signal */
  async #run(signal) {
    while (!signal.aborted) {
      // Nobody sees a page in the background.
      if (linked && !document.hidden) {
        try {
          const answer = await ask(this.#url, signal)
          if (!signal.aborted) this.#take(answer)
        } catch (error) {
          if (signal.aborted) return
          this.#fail(error)
          // It is gone, or never was: asking again would not bring it, unless somebody wants that.
          if (error instanceof Refused && error.status === 404) return
        }
      }
      await new Promise((go) => setTimeout(go, this.#everyMs))
    }
  }
}
