import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, dial, framing } from '../support/client.ts'
import { chunk, type Head, headText, readBody } from '../support/message.ts'
import { faithful } from './configuration.ts'
import type { Flow, Outcome } from './judge.ts'
import type { Ledger } from './ledger.ts'
import { PatternCheck, pieces } from './pattern.ts'
import type { Peers } from './peers.ts'

/** After this an answer is missed, milliseconds. */
const patienceMs = 25_000

/** When a client leaves before it has its answer. */
export type Leaving = 'head' | 'sending' | 'waiting' | 'reading' | 'soon'

export interface Wish {
  readonly flow: Flow
  /** The location: `/rr/` and the like. */
  readonly place: string
  readonly method?: string
  /** What the peer is asked for, see `peers-process.ts`. */
  readonly query?: Readonly<Record<string, string | number>>
  readonly size?: number
  readonly chunked?: boolean
  /** Milliseconds between two pieces of the body. */
  readonly sendPace?: number
  /** Milliseconds between two pieces of the answer that are read. */
  readonly readPace?: number
  readonly leave?: Leaving
  readonly version?: '1.0' | '1.1'
  /** The connection is closed after the answer. */
  readonly once?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** What all clients share. */
export interface Town {
  readonly port: number
  readonly ledger: Ledger
  readonly peers: Peers
}

/** A client with one connection, which it keeps as long as the program lets it. */
export class Visitor {
  readonly #town: Town
  #client: Client | undefined
  /** What `/stick/` has given it last, and whom that names. */
  #session: { readonly cookie: string; readonly peer: string } | undefined

  constructor(town: Town) {
    this.#town = town
  }

  close(): void {
    this.#client?.close()
    this.#client = undefined
  }

  /** Asks once, and tells the ledger what it saw. */
  async ask(wish: Wish): Promise<void> {
    const { ledger } = this.#town
    const session = wish.place === '/stick/' && !wish.headers?.['Cookie'] ? this.#session : undefined
    const id = ledger.begin({ ...wish.flow, bound: session?.peer })
    if (session) wish = { ...wish, headers: { ...wish.headers, Cookie: session.cookie } }
    const timer = setTimeout(() => {
      ledger.end(id, { kind: 'wrong', text: 'no answer in time' })
      this.close()
    }, patienceMs)
    try {
      const outcome = await this.#exchange(id, wish)
      if (outcome) ledger.end(id, outcome)
      else ledger.forget(id)
    } catch (error) {
      ledger.end(id, { kind: 'wrong', text: String(error) })
      this.close()
    }
    clearTimeout(timer)
    if (wish.once || wish.leave) this.close()
  }

  /** Several requests in one go; the answers come in their order. */
  async pipeline(wishes: readonly Wish[]): Promise<void> {
    const { ledger } = this.#town
    this.close()
    const client = await this.#connected()
    const ids = wishes.map(({ flow }) => ledger.begin(flow))
    await client.write(Buffer.concat(wishes.map((wish, i) => Buffer.concat(request(ids[i]!, wish)))))
    for (const [i, wish] of wishes.entries()) {
      try {
        ledger.end(ids[i]!, await this.#answer(client, ids[i]!, wish))
      } catch (error) {
        ledger.end(ids[i]!, { kind: 'wrong', text: `answer ${i + 1} of ${ids.length}: ${error}` })
      }
    }
    this.close()
  }

  /** Opens a tunnel, sends through it what comes back, and leaves. */
  async tunnel(flow: Flow, rounds: number, paceMs: number): Promise<void> {
    const { ledger } = this.#town
    const id = ledger.begin(flow)
    this.close()
    try {
      const client = await this.#connected()
      const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'a2V5' }
      const size = rounds * 3000
      await client.write(request(id, { flow, place: '/ws/', headers })[0]!)
      const { head } = await client.head()
      const status = statusOf(head)
      const check = new PatternCheck(id)
      if (status === 101) {
        for (const piece of pieces(id, size, 3000)) {
          await client.write(piece)
          const back = await client.inbox.take(piece.length)
          if (!back) break
          check.take(back)
          await sleep(paceMs)
        }
      }
      if (status === 101 && check.good && check.bytes === size) ledger.end(id, { kind: 'left' })
      else
        ledger.end(id, { kind: 'wrong', text: `tunnel ${status}, ${check.bytes} of ${size}, ${check.good}` })
    } catch (error) {
      ledger.end(id, { kind: 'wrong', text: String(error) })
    }
    this.close()
  }

  /** Opens a connection, sends some of a head perhaps, and leaves. */
  async knock(bytes: string): Promise<void> {
    const client = await dial(this.#town.port)
    if (bytes !== '') {
      this.#town.ledger.torn += 1
      await client.write(bytes)
    }
    client.close()
  }

  async #connected(): Promise<Client> {
    this.#client ??= await dial(this.#town.port)
    return this.#client
  }

  /** @returns undefined where the request was never sent as a whole */
  async #exchange(id: string, wish: Wish): Promise<Outcome | undefined> {
    const client = await this.#connected()
    const { leave } = wish
    const telling = leave === 'waiting' ? this.#town.peers.came(id, 3000) : undefined
    const [head, ...body] = request(id, wish)
    if (leave === 'head') {
      // Not as far as its name.
      this.#town.ledger.torn += 1
      await client.write(head!.subarray(0, 8))
      this.close()
      return undefined
    }
    await client.write(head!)
    const sending = this.#send(client, body, wish)
    if (leave === 'sending') {
      await sending
      return { kind: 'left' }
    }
    if (telling && (await telling)) return { kind: 'left' }
    if (leave === 'soon') {
      await sleep(30)
      return { kind: 'left' }
    }
    const outcome = await this.#answer(client, id, wish)
    await sending
    return outcome
  }

  async #send(client: Client, body: readonly Buffer[], { leave, sendPace = 0 }: Wish): Promise<void> {
    const part = leave === 'sending' ? body.slice(0, Math.ceil(body.length / 2)) : body
    for (const piece of part) {
      if (client.socket.destroyed) return
      await client.write(piece)
      if (sendPace > 0) await sleep(sendPace)
    }
  }

  async #answer(client: Client, id: string, wish: Wish): Promise<Outcome> {
    const { head } = await client.head()
    const status = statusOf(head)
    const peer = head.header('x-peer')
    const name = head.header('x-id')
    if (name !== undefined && name !== id) return this.#wrong(`answer of request ${name}`)
    const cookie = head.header('set-cookie')?.split(';', 1)[0]
    if (cookie !== undefined && wish.place === '/stick/') {
      // The name of another one is only good for as long as that one is there, and well.
      this.#session = faithful.some((name) => name === peer) ? { cookie, peer: peer! } : undefined
    }
    if (wish.leave === 'reading') {
      await client.inbox.some()
      return { kind: 'left' }
    }
    const check = new PatternCheck(id)
    const method = wish.method ?? 'GET'
    const how = framing(head, method)
    let complete = true
    if (wish.readPace !== undefined && typeof how === 'number') {
      for (let left = how; left > 0 && complete; ) {
        const part = await client.inbox.some(Math.min(left, 64 * 1024))
        complete = part !== undefined
        if (!part) break
        left -= part.length
        check.take(part)
        await sleep(wish.readPace)
      }
    } else {
      const body = await readBody(client.inbox, how, (part) => check.take(part))
      complete = body.complete
    }
    // A body of the program's own is no pattern.
    if (peer !== undefined && !check.good)
      return this.#wrong(`the body of ${peer} is another one: ${check.fault}`)
    if (!complete) {
      this.close()
      return { kind: 'cut', status }
    }
    const announced = Number(head.header('x-length') ?? 0)
    if (peer !== undefined && method !== 'HEAD' && check.bytes !== announced) {
      return this.#wrong(`${check.bytes} bytes of ${announced}, and a whole body`)
    }
    if (head.header('connection')?.toLowerCase() === 'close' || wish.version === '1.0') this.close()
    return { kind: 'answer', status, peer }
  }

  #wrong(text: string): Outcome {
    this.close()
    return { kind: 'wrong', text }
  }
}

function statusOf(head: Head): number {
  return Number(head.start.slice(9, 12))
}

/** A request: its head, then its body in pieces. */
function request(id: string, wish: Wish): Buffer[] {
  const { place, method = 'GET', size, chunked = false, version = '1.1', leave } = wish
  const query = new URLSearchParams({ id, k: String(id.length > 2 ? id.slice(-2) : id) })
  for (const [name, value] of Object.entries(wish.query ?? {})) query.set(name, String(value))
  if (leave === 'waiting') query.set('tell', '1')
  if (size !== undefined) query.set('size', String(size))
  const headers: Record<string, string | number> = { Host: 'soak', ...wish.headers }
  if (size !== undefined && !chunked) headers['Content-Length'] = size
  if (size !== undefined && chunked) headers['Transfer-Encoding'] = 'chunked'
  const head = headText(`${method} ${place}?${query} HTTP/${version}`, headers)
  const parts: Buffer[] = [Buffer.from(head, 'latin1')]
  if (size !== undefined) {
    for (const piece of pieces(id, size, 16 * 1024)) parts.push(chunked ? chunk(piece) : piece)
    if (chunked) parts.push(Buffer.from('0\r\n\r\n'))
  }
  return parts
}
