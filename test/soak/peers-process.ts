import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange, echo } from '../support/backend.ts'
import { chunk, headText } from '../support/message.ts'
import { type Deed, isMood, type Mood, now, type PeerOrder, type PeerTells } from './deed.ts'
import { PatternCheck, pieces } from './pattern.ts'

/*
 * A process of scripted peers: `node peers-process.ts NAME[=PORT] …`. Each does what its mood says, or what the request
 * asks it to do (`fault=`), and tells what it has done with each request.
 */

/** How long a peer that is slow takes to begin, milliseconds: well below the time-out of the configuration. */
const slowMs = 250
/** How often deeds are told, milliseconds. */
const tellEveryMs = 20
/** After its answer a peer that hangs up gives the connection so long, milliseconds: it is reused meanwhile, or idle. */
const hangUpMs = 15

let deeds: Deed[] = []
let lie = false

function tell(message: PeerTells): void {
  process.send?.(message)
}

setInterval(() => {
  if (deeds.length === 0) return
  tell({ kind: 'deeds', deeds })
  deeds = []
}, tellEveryMs)

/** One peer, and its connections that carry a request. */
class Peer {
  readonly name: string
  readonly backend: Backend
  mood: Mood = 'well'
  readonly #busy = new Set<Exchange['socket']>()
  readonly #hanging = new Set<Exchange['socket']>()

  constructor(name: string, backend: Backend) {
    this.name = name
    this.backend = backend
    backend.script = (exchange) => this.#serve(exchange)
  }

  async shut(): Promise<void> {
    tell({ kind: 'shut', peer: this.name, at: now() })
    await this.backend.stop()
  }

  async open(): Promise<void> {
    await this.backend.listen({ port: this.backend.port })
    tell({ kind: 'open', peer: this.name, at: now() })
  }

  async #serve(exchange: Exchange): Promise<void> {
    // It remembers all requests for tests; here there are too many.
    this.backend.requests.length = 0
    const from = now()
    const asked = new URL(exchange.target, 'http://peer').searchParams
    const id = asked.get('id') ?? ''
    this.#busy.add(exchange.socket)
    if (asked.has('tell')) tell({ kind: 'came', id })
    const wanted = asked.get('fault') ?? ''
    const mood = isMood(wanted) ? wanted : this.mood
    let bodyGood: boolean | undefined
    const note = (did: Deed['did'], status?: number) => {
      deeds.push({ id, peer: this.name, did, status, bodyGood, from, to: now() })
    }
    try {
      if (exchange.target.startsWith('/ws/')) return await tunnel(exchange, note)
      if (mood === 'stall') {
        // At once: of a client that gives up while a large body lies unread, its end is never seen.
        note('stall')
        await exchange.gone
        return
      }
      const check = new PatternCheck(id)
      const body = await exchange.body((part) => check.take(part))
      if (!body.complete) return note('gone')
      bodyGood = check.good && check.bytes === Number(asked.get('size') ?? 0)
      const lying = lie && exchange.target.startsWith('/calm/')
      if (lying) {
        lie = false
        note('answered', 200)
        return exchange.reset()
      }
      await this.#act(exchange, mood, asked, note)
      if (mood === 'hangup') this.#hangUp(exchange.socket)
    } finally {
      this.#busy.delete(exchange.socket)
    }
  }

  async #act(exchange: Exchange, mood: Mood, asked: URLSearchParams, note: Note): Promise<void> {
    switch (mood) {
      case 'reset':
        note('reset')
        return exchange.reset()
      case 'close':
        note('close')
        return exchange.end()
      case 'garbage':
        note('garbage')
        await exchange.send('HTTP/1.1 yes\r\nThis is: no answer\r\n\r\n')
        return exchange.end()
      case 'huge_head':
        note('huge_head')
        await exchange.send(`HTTP/1.1 200 OK\r\nX-Much: ${'x'.repeat(20_000)}\r\nContent-Length: 0\r\n\r\n`)
        return exchange.end()
      case 'status_500':
        return this.#answer(exchange, asked, 500, mood, note)
      case 'status_503':
        return this.#answer(exchange, asked, 503, mood, note)
      default:
        return this.#answer(exchange, asked, Number(asked.get('status') ?? 200), mood, note)
    }
  }

  async #answer(
    exchange: Exchange,
    asked: URLSearchParams,
    status: number,
    mood: Mood,
    note: Note,
  ): Promise<void> {
    const id = asked.get('id') ?? ''
    const wait = Number(asked.get('after') ?? 0) + (mood === 'slow' ? slowMs : 0)
    if (wait > 0) await Promise.race([sleep(wait), exchange.gone])
    const length = Number(asked.get('len') ?? 100)
    const bare = status === 204 || status === 304
    const as = exchange.version === 'HTTP/1.0' ? 'close' : (asked.get('as') ?? 'length')
    const fields: Record<string, string | number> = {
      'X-Peer': this.name,
      'X-Id': id,
      'X-Capacity': 100,
      'X-Length': bare ? 0 : length,
    }
    if (!bare && as === 'length') fields['Content-Length'] = length
    if (!bare && as === 'chunked') Object.assign(fields, { 'Transfer-Encoding': 'chunked', Trailer: 'X-End' })
    if (as === 'close') fields['Connection'] = 'close'
    if (asked.has('events')) fields['Content-Type'] = 'text/event-stream'
    const early = asked.has('hint') ? 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n' : ''
    const head = Buffer.from(early + headText(`HTTP/1.1 ${status} Scripted`, fields), 'latin1')
    // Half an answer of a byte would be none of it, and the rest waited for.
    const broken = (mood === 'cut' || mood === 'short') && length > 1
    const whole = broken ? Math.floor(length / 2) : length
    exchange.done()
    await exchange.send(head)
    let left = false
    if (!bare && exchange.method !== 'HEAD') {
      const pace = Number(asked.get('pace') ?? 0)
      const size = asked.has('events') ? 50 : undefined
      for (const part of pieces(id, whole, size)) {
        left = exchange.inbox.ended !== undefined
        if (left) break
        await exchange.send(as === 'chunked' ? chunk(part) : part)
        if (pace > 0) await Promise.race([sleep(pace), exchange.gone])
      }
      if (as === 'chunked' && !broken) await exchange.send('0\r\nX-End: yes\r\n\r\n')
    }
    // Half an answer without a body is a whole one.
    if (!left && broken && !bare && exchange.method !== 'HEAD') {
      // A body that ends with the connection would be whole after an orderly end.
      const did = as === 'close' ? 'cut' : mood
      note(did, status)
      return did === 'cut' ? exchange.reset() : exchange.end()
    }
    note(left ? 'gone' : 'answered', status)
    if (as === 'close') exchange.end()
  }

  /** Ends a connection a moment after an answer, unless the next request is on it already. */
  #hangUp(socket: Exchange['socket']): void {
    if (this.#hanging.has(socket)) return
    this.#hanging.add(socket)
    setTimeout(() => {
      this.#hanging.delete(socket)
      if (this.#busy.has(socket) || socket.destroyed) return
      tell({ kind: 'hung_up', peer: this.name, at: now() })
      socket.end()
    }, hangUpMs)
  }
}

type Note = (did: Deed['did'], status?: number) => void

/** Agrees to speak another protocol, and gives back what it is sent. */
async function tunnel(exchange: Exchange, note: Note): Promise<void> {
  await echo(exchange)
  note('tunnel', 101)
}

const peers = new Map<string, Peer>()
const addresses: Record<string, string> = {}
for (const word of process.argv.slice(2)) {
  const [name = '', port = '0'] = word.split('=')
  const listening = await backend({}, { port: Number(port) })
  peers.set(name, new Peer(name, listening))
  addresses[name] = listening.address
}
// Its port does not keep it alive, the harness does.
process.on('message', async (order: PeerOrder) => {
  if (order.kind === 'lie') {
    lie = true
    return
  }
  const peer = peers.get(order.peer)
  if (!peer) return
  if (order.kind === 'mood') peer.mood = order.mood
  else if (order.kind === 'shut') await peer.shut()
  else await peer.open()
})
process.on('disconnect', () => process.exit())
tell({ kind: 'listening', addresses })
