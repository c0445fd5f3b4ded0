import { readTrailers } from './fields.ts'

/** How the body of a message ends (RFC 9112 section 6.3). */
export type Framing = 'none' | 'length' | 'chunked' | 'close'

const states = { done: 0, length: 1, close: 2, chunkSize: 3, chunkData: 4, chunkEnd: 5, trailers: 6 }

/** Longest chunk-size line, and all extensions of a body together, bytes. */
const maxChunkLine = 4096
const maxExtensions = 16384
/** Longest trailer section of a message, bytes. */
export const maxTrailers = 16384

/** Parts shorter than this are put together, bytes. */
const smallPart = 1024

/** The one fault of a body that is too much and not wrong. */
export const extensionsTooLong = 'chunk extensions too long'

const chunkSize = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?$/

/** Takes the framing off a body, strictly: what two parsers could read in two ways is a fault (RFC 9112 section 7). */
export class BodyDecoder {
  /** What `next` has found of the body; undefined when it read framing alone. The buffer is not used again. */
  part: Buffer | undefined = undefined
  /** What is wrong, once `next` has returned -1. */
  fault = ''
  /** Names and values in turn, once a chunked body is complete; undefined where it had none. */
  trailers: string[] | undefined = undefined
  #state = states.done
  #left = 0
  /** An unfinished line. */
  #held: Buffer | undefined = undefined
  #extensions = 0
  #trailer = ''

  /** @param length bytes, of framing `length` */
  begin(framing: Framing, length: number): void {
    this.part = undefined
    this.trailers = undefined
    this.#held = undefined
    this.#extensions = 0
    this.#trailer = ''
    this.#left = length
    if (framing === 'length' && length > 0) this.#state = states.length
    else if (framing === 'chunked') this.#state = states.chunkSize
    else this.#state = framing === 'close' ? states.close : states.done
  }

  /** Takes the part that `next` has found, so that nothing holds it any longer than its reader. */
  take(): Buffer | undefined {
    const { part } = this
    this.part = undefined
    return part
  }

  /** Whether the body is complete. */
  get done(): boolean {
    return this.#state === states.done
  }

  /** Whether it ends with the connection. */
  get untilClose(): boolean {
    return this.#state === states.close
  }

  /**
   * Reads on until a part of the body has been found, the body is complete, or the chunk is at its end. Small chunks of
   * the body are put together: each part costs whoever passes it on a write of its own.
   * @param at where to begin; less than the chunk's length
   * @returns where to go on; -1 for a fault
   */
  next(chunk: Buffer, at: number): number {
    this.part = undefined
    const { length } = chunk
    let joined: Buffer | undefined
    let size = 0
    let from = at
    while (from < length) {
      if (this.#state === states.length || this.#state === states.chunkData) {
        const end = Math.min(length, from + this.#left)
        const small = this.#state === states.chunkData && end - from < smallPart
        if (this.part && !small) break
        this.#left -= end - from
        if (this.#left === 0) this.#state = this.#state === states.length ? states.done : states.chunkEnd
        if (!this.part) this.part = from === 0 && end === length ? chunk : chunk.subarray(from, end)
        else {
          if (!joined) {
            joined = Buffer.allocUnsafe(size + length - from)
            this.part.copy(joined)
          }
          chunk.copy(joined, size, from, end)
        }
        if (!small) return end
        size += end - from
        from = end
      } else if (this.#state === states.close) {
        this.part = from === 0 ? chunk : chunk.subarray(from)
        return length
      } else if (this.#state === states.done) break
      else {
        const next = this.#line(chunk, from)
        // What came before a fault is passed on first; the fault is found again.
        if (next < 0 && !this.part) return next
        if (next < 0) break
        from = next
      }
    }
    if (joined) this.part = joined.subarray(0, size)
    return from
  }

  /** Reads a line of chunked framing: a size, the end of a chunk, or a trailer. */
  #line(chunk: Buffer, from: number): number {
    const newline = chunk.indexOf(10, from)
    const part = chunk.subarray(from, newline < 0 ? chunk.length : newline + 1)
    const held = this.#held
    const all = held ? Buffer.concat([held, part]) : part
    if (all.length > maxChunkLine) return this.#fail('chunk line too long')
    if (newline < 0) {
      this.#held = all
      return chunk.length
    }
    this.#held = undefined
    if (all.length < 2 || all[all.length - 2] !== 13) return this.#fail('bare line feed in chunked body')
    const line = all.toString('latin1', 0, all.length - 2)
    const fault = this.#chunkLine(line)
    return fault === undefined ? newline + 1 : this.#fail(fault)
  }

  #chunkLine(line: string): string | undefined {
    if (this.#state === states.chunkEnd) {
      if (line !== '') return 'chunk longer than its size'
      this.#state = states.chunkSize
      return undefined
    }
    if (this.#state === states.chunkSize) {
      const size = chunkSize.exec(line)
      if (!size) return 'invalid chunk size'
      this.#extensions += line.length - size[1]!.length
      if (this.#extensions > maxExtensions) return extensionsTooLong
      this.#left = Number.parseInt(size[1]!, 16)
      this.#state = this.#left === 0 ? states.trailers : states.chunkData
      return undefined
    }
    if (line !== '') {
      this.#trailer += this.#trailer === '' ? line : `\r\n${line}`
      return this.#trailer.length > maxTrailers ? 'trailers too long' : undefined
    }
    if (this.#trailer !== '') {
      this.trailers = readTrailers(this.#trailer)
      if (!this.trailers) return 'invalid trailer'
    }
    this.#state = states.done
    return undefined
  }

  #fail(fault: string): -1 {
    this.fault = fault
    return -1
  }
}
