/*
 * A pipe takes 4096 bytes as one, so that lines of several threads do not mix; a longer line it may take in pieces,
 * between which another thread could write. So the threads write to a pipe in turns, and who has written a part of a
 * line keeps the turn until the rest of it is written.
 */

/** Files with the same word wait for each other without need, which costs them nothing but time. */
const count = 64
/** Its owner died in the midst of a line. */
const torn = -1
/** Added to the owner's number while it is in the midst of a line. */
const midst = 1000
/** A turn lasts as long as a write, some microseconds: it is looked at so often before the caller goes away. */
const spins = 200

let words: Int32Array | undefined
let me = 0

/** To be called by the thread that begins the others. @returns what they need for `joinTurns` */
export function shareTurns(): SharedArrayBuffer {
  words ??= new Int32Array(new SharedArrayBuffer(4 * count))
  me = count + 1
  // The line above makes it so.
  return words.buffer as SharedArrayBuffer
}

/** @param thread which of the others this is, from 0 */
export function joinTurns(buffer: SharedArrayBuffer, thread: number): void {
  words = new Int32Array(buffer)
  me = thread + 1
}

/** The turns of threads at one pipe. Where there is one thread it is always its turn. */
export class PipeTurn {
  readonly #at: number
  #mine = false

  constructor(path: string) {
    let hash = 0
    for (let i = 0; i < path.length; i++) hash = (Math.imul(hash, 31) + path.charCodeAt(i)) >>> 0
    this.#at = hash % count
  }

  /** @returns whether it is this thread's turn; `torn`: and whoever had it before has left part of a line */
  take(): boolean | 'torn' {
    if (words === undefined || this.#mine) return true
    for (let spin = 0; spin < spins; spin++) {
      const owner = Atomics.load(words, this.#at)
      if (owner > 0 || Atomics.compareExchange(words, this.#at, owner, me) !== owner) continue
      this.#mine = true
      return owner === torn ? 'torn' : true
    }
    return false
  }

  /** Whether this thread is in the midst of a line, now that it is its turn. */
  mark(within: boolean): void {
    if (words !== undefined && this.#mine) Atomics.store(words, this.#at, within ? me + midst : me)
  }

  free(): void {
    if (!this.#mine) return
    this.#mine = false
    if (words !== undefined) Atomics.store(words, this.#at, 0)
  }
}

/** A thread is no more: a turn that it had is over. */
export function endTurns(thread: number): void {
  if (words === undefined) return
  for (let i = 0; i < count; i++) {
    Atomics.compareExchange(words, i, thread + 1, 0)
    Atomics.compareExchange(words, i, thread + 1 + midst, torn)
  }
}
