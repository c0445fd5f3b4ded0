import { afterReading } from '../net/late.ts'
import type { IncomingRequest } from './client-side.ts'

/** Where a request body is written to: one try's connection. */
export interface BodySink {
  /** @returns false when it wants no more until `resume` of the body is called */
  write(chunk: Buffer): boolean
  end(): void
  /** The body will never be complete: the client left, was too slow or sent too much. */
  broken(why: BodyFault): void
}

/** Why a body is not complete. */
export type BodyFault = 'too_large' | 'timeout' | 'aborted'

export interface BodyOptions {
  /** `client_max_body_size`, bytes; 0 is unlimited. */
  readonly limit: number
  /** `proxy_replay_buffer`, bytes: how much is kept so that it can be sent again. */
  readonly replay: number
  /** `client_body_timeout`, milliseconds between two reads. */
  readonly timeout: number
  /** Counts what was read. */
  readonly onBytes: (count: number) => void
}

/**
 * The body of a client's request: read as fast as the peer takes it, with its beginning kept so that another
 * peer can be tried. Once more has come than may be kept, nothing is kept and it cannot be sent again.
 */
export class RequestBody {
  /** Announced length; undefined for a chunked body. */
  readonly length: number | undefined
  #request: IncomingRequest
  #options: BodyOptions
  #held: Buffer[] = []
  #heldBytes = 0
  #received = 0
  #replayable = true
  #begun = false
  #ended = false
  #fault: BodyFault | undefined = undefined
  #sink: BodySink | undefined = undefined
  #timer: NodeJS.Timeout | undefined = undefined
  #unsettle: (() => void) | undefined = undefined
  #waiting: ((ready: BodyFault | undefined) => void) | undefined = undefined

  constructor(request: IncomingRequest, length: number | undefined, options: BodyOptions) {
    this.#request = request
    this.length = length
    this.#options = options
    request.take({
      data: (chunk) => this.#receive(chunk),
      end: () => this.#end(),
      aborted: () => this.#break('aborted'),
    })
  }

  /** Whether all of it is at hand, so that its length is known and it can be sent at any time. */
  get complete(): boolean {
    return this.#ended && this.#replayable
  }

  /** Whether the client has sent all of it. */
  get ended(): boolean {
    return this.#ended
  }

  /** Whether it can be sent (again) from its beginning: all that came is held. */
  get replayable(): boolean {
    return (this.#replayable || !this.#begun) && this.#fault === undefined
  }

  get fault(): BodyFault | undefined {
    return this.#fault
  }

  /** The whole body, when `complete`. */
  take(): Buffer {
    // Held once and not twice: neither the pieces beside the whole, nor two wholes.
    const whole = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held)
    this.#held = [whole]
    return whole
  }

  /**
   * Reads until all has come or no more can be kept, so that a peer is not held up by a slow client and a retry
   * is possible.
   * @returns undefined when a peer can be asked
   */
  gather(): Promise<BodyFault | undefined> {
    // Once more has come than may be kept, what would be read now had no place to go.
    if (this.#fault || this.#ended || !this.#replayable) return Promise.resolve(this.#fault)
    return new Promise((resolve) => {
      this.#waiting = resolve
      this.#arm()
      this.#request.resume()
    })
  }

  /** Sends what is held to the sink, then what comes. */
  attach(sink: BodySink): void {
    this.#sink = sink
    this.#begun = true
    let more = true
    for (const chunk of this.#held) more = sink.write(chunk)
    if (!this.#replayable) this.#forget()
    if (this.#fault) sink.broken(this.#fault)
    else if (this.#ended) sink.end()
    else if (more) this.resume()
  }

  /** The sink takes no more. Reading stops until the next `attach`. */
  detach(): void {
    this.#sink = undefined
    this.#disarm()
    if (!this.#ended) this.#request.pause()
  }

  /** The sink can take more. */
  resume(): void {
    if (this.#ended || this.#fault) return
    this.#arm()
    this.#request.resume()
  }

  #receive(chunk: Buffer): void {
    this.#received += chunk.length
    this.#options.onBytes(chunk.length)
    if (this.#fault) return
    if (this.#options.limit > 0 && this.#received > this.#options.limit) {
      this.#break('too_large')
      return
    }
    this.#timer?.refresh()
    if (this.#replayable) {
      if (this.#heldBytes + chunk.length <= this.#options.replay) {
        this.#held.push(chunk)
        this.#heldBytes += chunk.length
      } else {
        this.#replayable = false
        // Nobody has been sent the beginning yet: it goes with the first attempt, and then is gone.
        if (this.#sink) this.#forget()
        else this.#held.push(chunk)
      }
    }
    if (this.#sink) {
      if (!this.#sink.write(chunk)) {
        this.#disarm()
        this.#request.pause()
      }
    } else if (!this.#replayable) {
      this.#request.pause()
      this.#disarm()
      this.#ready(undefined)
    }
  }

  #end(): void {
    this.#ended = true
    this.#disarm()
    if (this.#fault) return
    this.#ready(undefined)
    this.#sink?.end()
  }

  #break(why: BodyFault): void {
    if (this.#fault || this.#ended) return
    this.#fault = why
    this.#disarm()
    this.#forget()
    this.#ready(why)
    this.#sink?.broken(why)
  }

  #ready(result: BodyFault | undefined): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(result)
  }

  #forget(): void {
    this.#held = []
    this.#heldBytes = 0
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.#late(), this.#options.timeout)
  }

  #late(): void {
    const received = this.#received
    this.#unsettle = afterReading(() => {
      if (this.#received === received) this.#break('timeout')
      else this.#timer?.refresh()
    })
  }

  #disarm(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unsettle?.()
    this.#unsettle = undefined
  }
}
