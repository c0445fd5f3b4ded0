import { connect, type Socket } from 'node:net'
import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises'
import { meaning, type Plan, sure, variantOf } from './plan.ts'
import { type Ended, readAnswer, type StrictAnswer, type StrictRequest } from './strict.ts'

/** What a client got for what it sent. */
export interface Got {
  readonly bytes: Buffer
  /** How the other side ended the connection; `open` when it has not. */
  readonly ended: Ended
  /** Bytes that were handed over before the end. */
  readonly sent: number
  /** It waited in vain for an answer or for the end of the connection. */
  readonly hung: boolean
}

/** How long an answer may take that has to come, and how long one that may come is waited for, milliseconds. */
const patienceMs = 15_000
const interestMs = 1500

/** Every answer so far, the last of which may not be whole. */
export function answersIn(bytes: Buffer, requests: readonly StrictRequest[], ended: Ended): StrictAnswer[] {
  const answers: StrictAnswer[] = []
  let at = 0
  while (at < bytes.length) {
    const request = requests[answers.length]
    let answer = readAnswer(bytes, at, request?.method ?? 'GET', request?.upgrade ?? false, ended)
    // What could not be read as a request is answered without knowing that it was to be HEAD; nothing follows then.
    const unread = answer.last && [400, 408].includes(answer.status) && answer.end < bytes.length
    if (request?.method === 'HEAD' && unread) answer = readAnswer(bytes, at, 'GET', false, ended)
    // What is no request may have been one with HEAD, to whoever reads its first line alone.
    const headOnly = answer.state === 'cut' && answer.last && answer.status >= 400 && answer.body.length === 0
    if (!request && headOnly) answer = readAnswer(bytes, at, 'HEAD', false, ended)
    answers.push(answer)
    at = answer.end
    if (answer.state !== 'whole' || answer.status === 101 || answer.last) break
  }
  return answers
}

/** Runs the client's side of a plan over a connection to a port. */
export async function runClient(plan: Plan, port: number): Promise<Got> {
  const run = new ClientRun(plan, connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }))
  return run.run()
}

class ClientRun {
  readonly #plan: Plan
  readonly #socket: Socket
  readonly #requests: readonly StrictRequest[]
  readonly #rest: string
  #parts: Buffer[] = []
  #length = 0
  #ended: Ended = 'open'
  #sent = 0
  #heardAt = performance.now()
  /** Answers that were whole when last looked. */
  #looked = { length: -1, answers: [] as StrictAnswer[] }

  constructor(plan: Plan, socket: Socket) {
    this.#plan = plan
    this.#socket = socket
    const { requests, rest } = meaning(plan)
    this.#requests = requests
    this.#rest = rest
    socket.on('data', (chunk: Buffer) => {
      this.#parts.push(chunk)
      this.#length += chunk.length
      this.#heardAt = performance.now()
      const { ending } = plan
      if (typeof ending === 'object' && this.#length >= ending.leave) socket.resetAndDestroy()
    })
    socket.on('end', () => this.#finish('fin'))
    socket.on('error', () => this.#finish('reset'))
    socket.on('close', () => this.#finish('reset'))
  }

  #finish(how: Ended): void {
    if (this.#ended === 'open') this.#ended = how
  }

  get #bytes(): Buffer {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)]
    return this.#parts[0] ?? Buffer.alloc(0)
  }

  #answers(): StrictAnswer[] {
    if (this.#looked.length !== this.#length || this.#ended !== 'open') {
      this.#looked = {
        length: this.#length,
        answers: answersIn(this.#bytes, this.#requests, this.#ended).filter(({ state }) => state === 'whole'),
      }
    }
    return this.#looked.answers
  }

  /** Waits until something is so, or the other side has ended. @returns false when it took too long */
  async #until(so: () => boolean, ms: number): Promise<boolean> {
    const begun = performance.now()
    while (this.#ended === 'open' && !so()) {
      if (performance.now() - Math.max(begun, this.#heardAt) > ms) return false
      await sleep(2)
    }
    return true
  }

  async run(): Promise<Got> {
    const { ending, slowMs } = this.#plan
    if (slowMs > 0) {
      this.#socket.pause()
      setTimeout(() => this.#socket.resume(), slowMs)
    }
    await this.#send()
    let hung = false
    if (ending === 'reset') {
      await sleep(this.#plan.pauseMs)
      this.#socket.resetAndDestroy()
    } else if (ending === 'fin') this.#socket.end()
    else hung = !(await this.#wait())
    // An orderly end is answered with one, whatever came of the request.
    if (this.#ended === 'open' && !this.#socket.destroyed) {
      const closes = await this.#until(() => this.#socket.destroyed, patienceMs)
      hung ||= !closes
    }
    this.#socket.destroy()
    return { bytes: this.#bytes, ended: this.#ended, sent: this.#sent, hung }
  }

  /** @returns false when an answer that has to come has not, or a connection that has to end goes on */
  async #wait(): Promise<boolean> {
    const certain = sure(this.#plan)
    const last = () => this.#answers().at(-1)?.last === true
    const all = () => this.#answers().length >= this.#requests.length
    const most = variantOf(this.#plan).patient ? interestMs : 3 * interestMs
    if (certain > 0) {
      const enough = () => last() || this.#answers().length >= certain
      if (!(await this.#until(enough, patienceMs))) return false
    }
    // What may come as well: more answers, or the end after something that is no request.
    await this.#until(() => last() || (all() && this.#rest === 'none'), most)
    if (last()) return this.#until(() => false, patienceMs)
    this.#socket.end()
    return true
  }

  async #send(): Promise<void> {
    const { messages, cuts, pauseMs, inTurn } = this.#plan
    let at = 0
    const places = [...cuts]
    for (const [i, message] of messages.entries()) {
      if (inTurn && i > 0) await this.#until(() => this.#answers().length >= i, interestMs)
      const end = at + message.bytes.length
      const start = at
      while (at < end) {
        while (places.length > 0 && places[0]! <= at) places.shift()
        const expects = this.#expecting(message.bytes, at - start)
        const to = Math.min(end, places[0] ?? end, expects ?? end)
        const part = message.bytes.subarray(at - start, to - start + 0)
        if (this.#socket.destroyed || this.#ended !== 'open') return
        await this.#write(part)
        at = to
        this.#sent = at
        if (at === end) break
        // A client that expects a 100 sends the body anyway when none comes for a while.
        if (expects === to) await sleep(150)
        else if (pauseMs > 0 && cuts.length < 20) await sleep(pauseMs)
        else await breathe()
      }
    }
  }

  /** Where the head of a request ends that expects a 100, if that is still to come. */
  #expecting(bytes: Buffer, from: number): number | undefined {
    if (bytes.indexOf('100-', 0, 'latin1') < 0) return undefined
    const end = bytes.indexOf('\r\n\r\n', 0, 'latin1') + 4
    return end > from && end < bytes.length ? this.#sent - from + end : undefined
  }

  /** Settles when it is written, or as soon as the other side does not want it any more. */
  #write(part: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, interestMs)
      this.#socket.write(part, () => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}
