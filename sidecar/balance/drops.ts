import type { Peer } from '../../feedback/peer.ts'

/** Something under way with a peer. */
export interface Droppable {
  /** Undefined as long as there is none. */
  readonly peer: Peer | undefined
  /** The peer has left, and the time is over. Called again only where it is with another one then, or that one leaves again. */
  drop(): void
}

/** Whether a peer is gone from its group, or marked `down` there. */
export type Away = (peer: Peer) => boolean

interface Entry {
  readonly afterMs: number
  timer: NodeJS.Timeout | undefined
  /** Whose leaving the timer is about. */
  leaver: Peer | undefined
  /** A peer whose leaving has no more to say: it has been told of, or is a reload's, which gives its own time. */
  settled: Peer | undefined
}

/**
 * What is under way in this thread with peers whose leaving ends it (`proxy_connection_drop`). Nothing is in it where nobody
 * asks for that.
 */
export class Drops {
  readonly #entries = new Map<Droppable, Entry>()
  #away: Away = () => false

  /**
   * @param afterMs how long it may go on after its peer has left
   * @param late whether that may have happened already
   */
  add(one: Droppable, afterMs: number, late = false): void {
    const entry: Entry = { afterMs, timer: undefined, leaver: undefined, settled: undefined }
    this.#entries.set(one, entry)
    if (late && one.peer?.dismissed) entry.settled = one.peer
    if (late) this.#look(one, entry)
  }

  /** It has ended: to be said of each. */
  delete(one: Droppable): void {
    clearTimeout(this.#entries.get(one)?.timer)
    this.#entries.delete(one)
  }

  /**
   * Peers have come and gone. One that is back before the time is over has not left.
   * @param reload whether it is another configuration that has done it, and not what names or the API say
   */
  use(away: Away, reload: boolean): void {
    this.#away = away
    for (const [one, entry] of this.#entries) {
      const { peer } = one
      const waits = entry.timer !== undefined && entry.leaver === peer
      if (reload && !waits && peer && away(peer)) entry.settled = peer
      this.#look(one, entry)
    }
  }

  #look(one: Droppable, entry: Entry): void {
    const { peer } = one
    const away = peer !== undefined && this.#away(peer)
    if (!away && peer === entry.settled) entry.settled = undefined
    if (!away || peer === entry.settled) {
      clearTimeout(entry.timer)
      entry.timer = undefined
      return
    }
    if (entry.timer !== undefined && entry.leaver === peer) return
    clearTimeout(entry.timer)
    entry.leaver = peer
    // Never at once: whoever has just begun does not expect its end before it has done so.
    entry.timer = setTimeout(() => this.#end(one, entry), entry.afterMs).unref()
  }

  #end(one: Droppable, entry: Entry): void {
    entry.timer = undefined
    const { peer } = one
    // With another peer by now, whose time begins once it is seen to have left.
    if (peer === undefined || peer !== entry.leaver) this.#look(one, entry)
    else if (this.#away(peer)) {
      entry.settled = peer
      one.drop()
    }
  }
}
