import type { Call } from './call.ts'
import { Counted } from './counted.ts'
import { Rows } from './rows.ts'

/** Statuses have three digits. */
const codes = 1000
const fields = [
  'total',
  'processing',
  'discarded',
  'received',
  'sent',
  'handshaked',
  'reuses',
  'timedout',
  'failed',
] as const
const [total, processing, discarded, received, sent] = [0, 1, 2, 3, 4]

/** How handshakes of TLS end; those that take up a session again are counted twice, as done and as reused. */
export type HandshakeCount = 'handshaked' | 'reuses' | 'timedout' | 'failed'
const handshakes: Readonly<Record<HandshakeCount, number>> = {
  handshaked: 5,
  reuses: 6,
  timedout: 7,
  failed: 8,
}

/** What another thread needs to count in the same zone; can be posted to it. */
export interface SharedServerZone {
  readonly name: string
  readonly buffer: SharedArrayBuffer
}

/** Counters of the client side of one `status_zone`: what its servers or locations were asked and answered. */
export class ServerZone {
  readonly name: string
  /** Whether any of its servers speaks TLS. */
  secure = false
  readonly #rows: Rows

  /**
   * @param threads how many count in it
   * @param thread which of them this is, from 0
   * @param shared the zone that another thread has made; undefined makes one
   */
  constructor(name: string, threads = 1, thread = 0, shared?: SharedServerZone) {
    this.name = name
    this.#rows = new Rows(fields.length + codes, threads, thread, shared?.buffer)
  }

  share(): SharedServerZone {
    return { name: this.name, buffer: this.#rows.buffer }
  }

  /** Requests received, the running ones included. */
  get total(): number {
    return this.#rows.sum(total)
  }

  get processing(): number {
    return this.#rows.sum(processing)
  }

  /** Requests that ended without a response: the client went away, or `return 444`. */
  get discarded(): number {
    return this.#rows.sum(discarded)
  }

  /** Bytes from clients, heads included. */
  get received(): number {
    return this.#rows.sum(received)
  }

  /** Bytes to clients, heads included. */
  get sent(): number {
    return this.#rows.sum(sent)
  }

  /** Handshakes of TLS by how they have ended. */
  handshakes(count: HandshakeCount): number {
    return this.#rows.sum(handshakes[count])
  }

  handshake(count: HandshakeCount): void {
    this.#rows.own[handshakes[count]]! += 1
  }

  /** Responses by exact status, in order; those that never were are left out. */
  get responses(): ReadonlyMap<number, number> {
    const found = new Map<number, number>()
    for (let code = 0; code < codes; code++) {
      const count = this.#rows.sum(fields.length + code)
      if (count > 0) found.set(code, count)
    }
    return found
  }

  begin(): void {
    const row = this.#rows.own
    row[total]! += 1
    row[processing]! += 1
  }

  /** Counts a finished request. A call whose head was never sent counts as discarded. */
  end(call: Call): void {
    const row = this.#rows.own
    row[processing]! -= 1
    this.passed(call)
    if (call.bytesSent === 0) row[discarded]! += 1
    else row[fields.length + Math.min(codes - 1, Math.max(0, call.status))]! += 1
  }

  /** Counts the bytes of a call that have not been counted yet. */
  passed({ requestLength, bytesSent, counted }: Call): void {
    const row = this.#rows.own
    row[received]! += Counted.rest(requestLength, counted?.received)
    row[sent]! += Counted.rest(bytesSent, counted?.sent)
  }

  /** Counts a finished session of `stream`, by its status whether bytes went to the client or not. */
  endSession(call: Call): void {
    const row = this.#rows.own
    row[processing]! -= 1
    this.passed(call)
    row[fields.length + Math.min(codes - 1, Math.max(0, call.status))]! += 1
  }

  /** A thread has died: what it was processing is over. */
  clear(thread: number): void {
    this.#rows.clear(thread, [processing])
  }
}
