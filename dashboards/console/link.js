/*
 * The link to the program: server-sent events from /live. EventSource would hide why it was turned away, and when it
 * tries again, so the stream is read by hand.
 */

/** A state comes every second: silent for so long, the link is taken for lost, milliseconds. */
const silence = 3500
/** How long is waited before the first try to get it back, and at most. */
const shortest = 500
const longest = 10_000

/**
 * @typedef {object} Listener
 * @property {(name: string, data: unknown) => void} event
 * @property {() => void} up the first bytes of a new stream have come
 * @property {(why: string) => void} down it was lost, or could not be had
 */

export class Link {
  /** @type {Listener} */
  #listener
  #wait = shortest
  #up = false
  /** When the next try is due, by `performance.now()`; undefined while there is one. @type {number | undefined} */
  #dueAt
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener
  }

  start() {
    this.#timer = undefined
    this.#dueAt = undefined
    void this.#run()
  }

  /** Milliseconds until it tries again; undefined while it does, or is up. */
  get nextTry() {
    return this.#dueAt === undefined ? undefined : Math.max(0, this.#dueAt - performance.now())
  }

  /** Tries at once, where it waits. */
  hurry() {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#wait = shortest
    this.start()
  }

  async #run() {
    let why
    try {
      why = await this.#follow()
    } catch (error) {
      why = error instanceof Error && error.name !== 'TypeError' ? error.message : 'no answer'
    }
    this.#up = false
    // A little at random, so that the pages of many people do not all come at once.
    const wait = this.#wait * (0.75 + 0.5 * Math.random())
    this.#wait = Math.min(longest, 2 * this.#wait)
    this.#dueAt = performance.now() + wait
    this.#timer = setTimeout(() => this.start(), wait)
    this.#listener.down(why)
  }

  /** Reads one stream to its end. @returns {Promise<string>} why it ended */
  async #follow() {
    const control = new AbortController()
    let watchdog = setTimeout(() => control.abort(new Error('nothing heard')), silence)
    try {
      const response = await fetch('live', {
        headers: { accept: 'text/event-stream' },
        cache: 'no-store',
        signal: control.signal,
      })
      if (!response.ok || response.body === null) return await refusal(response)
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      let rest = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return 'the program ended it'
        clearTimeout(watchdog)
        watchdog = setTimeout(() => control.abort(new Error('nothing heard')), silence)
        const parts = (rest + value).split('\n\n')
        rest = parts.pop() ?? ''
        for (const part of parts) this.#take(part)
      }
    } finally {
      clearTimeout(watchdog)
      control.abort()
    }
  }

  /** @param {string} text an event without its closing line */
  #take(text) {
    let name = ''
    let data = ''
    for (const line of text.split('\n')) {
      if (line.startsWith('event: ')) name = line.slice(7)
      else if (line.startsWith('data: ')) data += line.slice(6)
    }
    if (!this.#up) {
      this.#up = true
      this.#wait = shortest
      this.#listener.up()
    }
    this.#listener.event(name, JSON.parse(data))
  }
}

/**
 * Why the program does not want to be watched, in its words.
 * @param {Response} response
 */
async function refusal(response) {
  try {
    const { error } = await response.json()
    return typeof error === 'string' ? error : `status ${response.status}`
  } catch {
    return `status ${response.status}`
  }
}
