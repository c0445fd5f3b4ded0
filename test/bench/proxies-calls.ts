import type { Socket } from 'node:net'
import { ack, endHeaders, endStream, fields, frame, number, types } from '../support/http2-frames.ts'
import { callMessage } from './proxies-scenarios.ts'

/*
 * The peer's side of a connection of HTTP/2 whose streams are calls of gRPC: as cheap as its answers, which are bytes
 * made beforehand but for the number of their stream. What is said in a head is not looked at.
 */

const headLength = 9
/** Of data that has come, after which the other side may send so much more. */
const windowStep = 1024 * 1024

const greeting = Buffer.concat([frame('settings', 0, 0), frame('window', 0, 0, number(windowStep))])
const settingsTaken = frame('settings', ack, 0)
const more = frame('window', 0, 0, number(windowStep))

const head = frame('headers', endHeaders, 1, fields({ ':status': '200', 'content-type': 'application/grpc' }))
// So little is on its way at once that no window of the other side can be used up.
const message = frame('data', 0, 1, callMessage)
const trailers = frame('headers', endHeaders | endStream, 1, fields({ 'grpc-status': '0' }))
const answer = Buffer.concat([head, message, trailers])
/** Where in it the number of the stream stands. */
const streamAt = [0, head.length, head.length + message.length].map((from) => from + 5)
const refusal = frame('headers', endHeaders | endStream, 1, fields({ ':status': '400' }))

export class Calls {
  readonly #socket: Socket
  /** What came of a frame so far. */
  #before: Buffer = Buffer.alloc(0)
  /** Bytes of the message that came so far, by the number of the stream. */
  readonly #lengths = new Map<number, number>()
  #data = 0
  #answers: Buffer[] = []

  constructor(socket: Socket) {
    this.#socket = socket
    socket.write(greeting)
  }

  /** @param chunk what comes after the preface */
  take(chunk: Buffer): void {
    const all = this.#before.length === 0 ? chunk : Buffer.concat([this.#before, chunk])
    let at = 0
    while (all.length - at >= headLength) {
      const length = all.readUIntBE(at, 3)
      if (all.length - at < headLength + length) break
      this.#frame(all, at, length)
      at += headLength + length
    }
    this.#before = all.subarray(at)
    if (this.#answers.length === 0) return
    this.#socket.write(Buffer.concat(this.#answers))
    this.#answers = []
  }

  #frame(all: Buffer, at: number, length: number): void {
    const type = all[at + 3]
    const flags = all[at + 4]!
    if (type === types.data) {
      this.#message(all.readUInt32BE(at + 5), length, (flags & endStream) !== 0)
    } else if (type === types.settings && (flags & ack) === 0) this.#answers.push(settingsTaken)
    else if (type === types.ping && (flags & ack) === 0) {
      const from = at + headLength
      this.#answers.push(frame('ping', ack, 0, all.subarray(from, from + length)))
    }
  }

  #message(stream: number, length: number, ended: boolean): void {
    this.#data += length
    if (this.#data >= windowStep) {
      this.#data -= windowStep
      this.#answers.push(more)
    }
    const whole = (this.#lengths.get(stream) ?? 0) + length
    if (!ended) {
      this.#lengths.set(stream, whole)
      return
    }
    this.#lengths.delete(stream)
    const fits = whole === callMessage.length
    const bytes = Buffer.from(fits ? answer : refusal)
    for (const from of fits ? streamAt : [5]) bytes.writeUInt32BE(stream, from)
    this.#answers.push(bytes)
  }
}
