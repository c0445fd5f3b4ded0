import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import type { Script } from './answers.ts'
import { keyOf } from './plan.ts'
import { type Ended, readRequest, type StrictRequest } from './strict.ts'

/** A request as it came to a peer, and what the peer answered. */
export interface Seen {
  request: StrictRequest
  /** Which attempt of the client's request it is, from 0. */
  readonly attempt: number
  readonly script: Script
  /** It came over a connection that had carried others. */
  readonly reused: boolean
  /** What was written so far, and how the peer ended it. */
  said: Buffer
  ended: Ended
  /** Bytes that came after the switch of protocols. */
  spoken: Buffer
  /** When it came, monotonic milliseconds. */
  readonly at: number
}

/** Who a request at a peer belongs to. */
export interface Claim {
  /** @returns the place where it is kept, and what to do with it */
  take(request: StrictRequest): { attempt: number; script: Script; seen: Seen[] }
}

/** Says whose requests are whose, and hears what is wrong. */
export interface Desk {
  claim(key: string): Claim | undefined
  complain(text: string): void
}

/** A peer that answers as its scripts say, byte for byte, and reads requests by a strict reader of its own. */
export class FuzzPeer {
  readonly #desk: Desk
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(desk: Desk) {
    this.#desk = desk
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      new Line(socket, this.#desk)
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    // A server on a port has such an address.
    return (this.#server.address() as AddressInfo).port
  }

  get open(): number {
    return this.#sockets.size
  }

  /** Ends what connections there are. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.hangUp()
    this.#server.close()
  }
}

/** One connection of a peer. */
class Line {
  readonly #socket: Socket
  readonly #desk: Desk
  #bytes: Buffer = Buffer.alloc(0)
  #carried = 0
  /** The request in progress, whose bytes are the first ones. */
  #current: Seen | undefined = undefined
  #answering = false
  /** The answer is out, and the connection stays. */
  #said = false
  #tunnel = false
  #over = false

  constructor(socket: Socket, desk: Desk) {
    this.#socket = socket
    this.#desk = desk
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      if (this.#tunnel) this.#speak(chunk)
      // Asked at the moment when it closed: it has not heard that.
      else if (this.#current?.ended !== 'fin') {
        this.#bytes = Buffer.concat([this.#bytes, chunk])
        this.#read()
      }
    })
    socket.on('end', () => {
      this.#over = true
      if (!this.#answering || this.#tunnel || this.#said) socket.end()
    })
    socket.on('close', () => {
      this.#over = true
    })
  }

  #speak(chunk: Buffer): void {
    if (this.#current) this.#current.spoken = Buffer.concat([this.#current.spoken, chunk])
  }

  #read(): void {
    const current = this.#current
    if (current) {
      const again = readRequest(this.#bytes, 0)
      if (typeof again !== 'object' || !('method' in again)) throw new Error('a head that is none any more')
      if (again.state === 'broken') this.#desk.complain(`a peer got a body with ${again.why}`)
      current.request = again
      if (this.#said) {
        this.#turn(current)
        return
      }
      if (current.script.tunnel && this.#answering) return
      if (again.state === 'whole' && this.#bytes.length > again.end && this.#answering) {
        const { target } = again
        const said = JSON.stringify(current.said.toString('latin1').slice(-300))
        this.#desk.complain(
          `a peer got more before it had answered ${target} with more than ${said}: ${this.#shown(again.end)}`,
        )
        this.#socket.destroy()
        return
      }
      this.#next()
      return
    }
    if (this.#bytes.length === 0) return
    const request = readRequest(this.#bytes, 0)
    if (request === 'cut') return
    if (!('method' in request)) {
      this.#desk.complain(`a peer got ${request.why}: ${this.#shown(0)}`)
      this.#socket.destroy()
      return
    }
    const claim = this.#desk.claim(keyOf(request))
    if (!claim) {
      this.#desk.complain(`a peer got a request that nobody has sent: ${this.#shown(0)}`)
      this.#socket.destroy()
      return
    }
    const { attempt, script, seen } = claim.take(request)
    this.#current = {
      request,
      attempt,
      script,
      reused: this.#carried > 0,
      said: Buffer.alloc(0),
      ended: 'open',
      spoken: Buffer.alloc(0),
      at: performance.now(),
    }
    this.#carried += 1
    seen.push(this.#current)
    this.#next()
  }

  /** Begins to answer, where it is time to. */
  #next(): void {
    const current = this.#current
    if (!current || this.#answering) return
    const { when } = current.script
    if (when === 'head' || current.request.state === 'whole') {
      this.#answering = true
      void this.#answer(current)
    }
  }

  async #answer(seen: Seen): Promise<void> {
    const { bytes, cuts, pauseMs, end, tunnel } = seen.script
    let at = 0
    for (const cut of [...cuts, bytes.length]) {
      if (this.#socket.destroyed) break
      const part = bytes.subarray(at, cut)
      at = cut
      seen.said = Buffer.concat([seen.said, part])
      if (part.length > 0) this.#socket.write(part)
      if (cut === bytes.length) break
      // Waits at every byte would take too long.
      if (pauseMs > 0 && cuts.length < 20) await sleep(pauseMs)
      else await breathe()
    }
    if (tunnel) {
      this.#tunnel = true
      const rest = this.#bytes.subarray(seen.request.end)
      if (rest.length > 0) this.#speak(rest)
      if (this.#over) this.#socket.end()
      return
    }
    if (end === 'stall') return
    if (end === 'reset') {
      seen.ended = 'reset'
      this.#socket.resetAndDestroy()
      return
    }
    if (end === 'fin' || this.#over) {
      seen.ended = 'fin'
      this.#socket.end()
      return
    }
    this.#said = true
    this.#turn(seen)
  }

  /** Both are whole: what comes next is the next request. An answer may come before its request has. */
  #turn(seen: Seen): void {
    if (!this.#said || seen.request.state !== 'whole') return
    this.#answering = false
    this.#said = false
    this.#current = undefined
    this.#bytes = this.#bytes.subarray(seen.request.end)
    this.#read()
  }

  #shown(at: number): string {
    return JSON.stringify(this.#bytes.toString('latin1', at, at + 400))
  }
}
