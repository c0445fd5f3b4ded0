import { existsSync, readlinkSync } from 'node:fs'

/** Words that a lock takes: its owner, and how many sleep until it is free. */
export const lockWords = 2

/** How often a taken lock is looked at before the thread sleeps: a critical section lasts about as long. */
const spins = 60
/** Longest sleep, milliseconds: what a wake-up that was lost costs. */
const napMs = 1
/** After so many sleeps over one owner it is asked whether the owner still lives. */
const doubt = 5
/** Where the system cannot be asked: how many sleeps over one owner until it is taken for dead. */
const despair = 2000

/**
 * A lock between threads on shared words. The word holds the owner's number in the system, so that the lock of a
 * thread that died inside can be taken back by whoever waits for it, without anybody's help.
 */
export class Lock {
  readonly #words: Int32Array
  readonly #at: number
  readonly #me: number

  /**
   * @param words shared; `lockWords` of them, 0 at first, from `at` on are the lock's
   * @param me the number of this thread; see `threadNumber`
   */
  constructor(words: Int32Array, at: number, me: number = threadNumber()) {
    this.#words = words
    this.#at = at
    this.#me = me
  }

  /** Waits until the lock is this thread's. Not to be called by a thread that has it. */
  take(): void {
    if (Atomics.compareExchange(this.#words, this.#at, 0, this.#me) !== 0) this.#wait()
  }

  free(): void {
    Atomics.store(this.#words, this.#at, 0)
    if (Atomics.load(this.#words, this.#at + 1) > 0) Atomics.notify(this.#words, this.#at, 1)
  }

  #wait(): void {
    const words = this.#words
    const at = this.#at
    let last = 0
    let naps = 0
    for (;;) {
      for (let spin = 0; spin < spins; spin++) {
        if (Atomics.load(words, at) === 0 && Atomics.compareExchange(words, at, 0, this.#me) === 0) return
      }
      const owner = Atomics.load(words, at)
      if (owner === 0) continue
      naps = owner === last ? naps + 1 : 0
      last = owner
      // A count that a dying sleeper leaves behind costs needless wake-ups and nothing else.
      Atomics.add(words, at + 1, 1)
      Atomics.wait(words, at, owner, napMs)
      Atomics.sub(words, at + 1, 1)
      if (naps < doubt || alive(owner, naps)) continue
      if (Atomics.compareExchange(words, at, owner, this.#me) === owner) return
    }
  }
}

function alive(owner: number, naps: number): boolean {
  return system ? existsSync(`/proc/self/task/${owner}`) : naps < despair
}

const system = existsSync('/proc/thread-self')
let own = 0

/** The number of this thread: the system's where it can be asked, otherwise one drawn. 1 or more. */
function threadNumber(): number {
  if (own === 0) {
    const name = system ? readlinkSync('/proc/thread-self').split('/').at(-1) : undefined
    own = Number(name) || 1 + Math.floor(Math.random() * 0x7ffffffe)
  }
  return own
}
