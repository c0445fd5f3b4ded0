import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, dial } from '../support/client.ts'
import { type UdpClient, udpClient } from '../support/udp-client.ts'
import type { BytePeers, Task } from './byte-peers.ts'
import { now } from './deed.ts'
import { PatternCheck, pieces } from './pattern.ts'

/** A line of the log of sessions, see `configuration.ts`. */
export interface SessionLine {
  readonly protocol: 'TCP' | 'UDP'
  /** Of the client's connection. */
  readonly port: number
  readonly status: number
  /** Bytes to the client, and from it. */
  readonly sent: number
  readonly received: number
}

/** Doors of the program that sessions may come in by. */
export interface Doors {
  readonly plain: number
  /** Where one direction goes on after the other has ended. */
  readonly half: number
  /** Where a PROXY header comes first. */
  readonly proxied: number
  readonly udp: number
}

/** What one client has seen of its session, and what the log has to say of it. */
interface Seen {
  readonly what: string
  readonly protocol: SessionLine['protocol']
  readonly port: number
  readonly status: number
  /** Undefined where nobody can know: somebody has left in the middle. */
  readonly sent: number | undefined
  readonly received: number | undefined
  /** Whether it may have gone before the program had looked at it: then it was no session. */
  readonly fleeting?: boolean | undefined
  readonly at: number
}

/** How long a record may take to come, milliseconds. */
const recordMs = 5000
/** How long an answer may take, milliseconds: peers give theirs at once. */
const patienceMs = 15_000

/** Sessions of `stream` that clients have had, and what is wrong with them. */
export class Sessions {
  /** Sessions that are over and were found in the log. */
  judged = 0
  /** Sessions that were begun, whatever became of them. */
  begun = 0
  readonly #peers: BytePeers
  readonly #doors: Doors
  readonly #fail: (text: string) => void
  /** By protocol and port: what waits for its record. */
  readonly #seen = new Map<string, Seen[]>()
  /** Records that came before their client has said what it saw. */
  readonly #records = new Map<string, SessionLine[]>()
  #serial = 0

  constructor(peers: BytePeers, doors: Doors, fail: (text: string) => void) {
    this.#peers = peers
    this.#doors = doors
    this.#fail = fail
  }

  /** Sessions that wait for their records. */
  get open(): number {
    return [...this.#seen.values()].reduce((sum, { length }) => sum + length, 0)
  }

  record(line: SessionLine): void {
    add(this.#records, keyOf(line), line)
    this.#match(keyOf(line))
  }

  /** Gives up waiting for records that have not come. @param last whether none will come any more */
  settle(last = false): void {
    for (const [key, seen] of this.#seen) {
      while (seen[0] !== undefined && (last || now() - seen[0].at > recordMs)) {
        const { what, fleeting } = seen.shift()!
        if (fleeting) this.begun -= 1
        else this.#fail(`${what}: not in the log of sessions`)
      }
      if (seen.length === 0) this.#seen.delete(key)
    }
    if (!last) return
    for (const [key, lines] of this.#records)
      for (const line of lines) this.#fail(`${key}: logged ${JSON.stringify(line)}, and nobody had it`)
  }

  /** One session of any kind, from its beginning to its end. */
  async one(dice: () => number): Promise<void> {
    const at = dice()
    const size = Math.floor(dice() ** 4 * 3_000_000)
    const { plain, half, proxied } = this.#doors
    if (at < 0.25) await this.#echo(plain, size, 0)
    else if (at < 0.35) await this.#echo(proxied, size, 0, header(dice))
    else if (at < 0.4) await this.#echo(half, 200, dice() * 4000)
    else if (at < 0.55) await this.#leave(dice() < 0.5 ? plain : half, size, dice)
    else if (at < 0.65) await this.#cut(dice() < 0.5 ? plain : half, size)
    else if (at < 0.75) await this.#told(plain, 'tell', size)
    else if (at < 0.85) await this.#told(half, 'answer', size)
    else if (at < 0.9) await this.#stranger(proxied)
    else await this.#datagrams(1 + Math.floor(dice() * 20), dice() < 0.3)
  }

  /** Sends, gets it all back, and ends. @param restMs before the second half */
  #echo(port: number, size: number, restMs: number, before = ''): Promise<void> {
    return this.#session(`echo of ${size}`, port, 'echo', 0, before, async (client, name) => {
      const check = new PatternCheck(name)
      const back = (async () => {
        while (check.bytes < size) {
          const some = await client.inbox.some()
          if (some === undefined) return `ended (${client.inbox.ended}) after ${check.bytes} bytes`
          check.take(some)
        }
        return check.fault
      })()
      let sent = 0
      for (const piece of pieces(name, size, Math.min(65_536, Math.ceil(size / 2) || 1))) {
        await client.write(piece)
        sent += piece.length
        if (sent < size) await sleep(restMs)
      }
      const wrong = await back
      client.end()
      const end = await client.closed
      const text = wrong ?? (end === 'fin' ? undefined : `ended by ${end}`)
      return { wrong: text, sent: size, received: size, got: size }
    })
  }

  /** Leaves in the middle, in order or not. */
  #leave(port: number, size: number, dice: () => number): Promise<void> {
    return this.#session(`leaves in ${size}`, port, 'echo', 0, '', async (client, name) => {
      for (const piece of pieces(name, size, 8192)) {
        if (dice() < 0.1) break
        void client.write(piece)
      }
      await sleep(dice() * 20)
      if (dice() < 0.5) client.reset()
      else client.close()
      return { fleeting: true }
    })
  }

  /** Its peer breaks off: the client is to see that, and nothing that looks like an end. */
  #cut(port: number, size: number): Promise<void> {
    return this.#session(`cut after ${size}`, port, 'reset', size, '', async (client, name) => {
      for (const piece of pieces(name, size + 1, 16_384)) await client.write(piece)
      const end = await client.closed
      return { wrong: end === 'reset' ? undefined : `ended by ${end}, and its peer has broken off` }
    })
  }

  /** Gets what its peer has to tell, at once or once the client has ended its side. */
  #told(port: number, task: 'tell' | 'answer', size: number): Promise<void> {
    return this.#session(`${task} ${size}`, port, task, size, '', async (client, name) => {
      if (task === 'answer') client.end()
      const check = new PatternCheck(name)
      for (let some = await client.inbox.some(); some !== undefined; some = await client.inbox.some())
        check.take(some)
      const { ended } = client.inbox
      client.close()
      const good = check.good && check.bytes === size && ended === 'fin'
      const wrong = good
        ? undefined
        : `${check.bytes} bytes, ended by ${ended}, ${check.fault ?? 'all right'}`
      return { wrong, sent: size, received: 0 }
    })
  }

  /** Speaks where a PROXY header is expected, and none comes. */
  async #stranger(port: number): Promise<void> {
    this.begun += 1
    const client = await dial(port)
    const own = client.socket.localPort!
    await client.write('GET / HTTP/1.1\r\n\r\n')
    await client.closed
    client.close()
    const expected = { status: 400, sent: 0, received: undefined }
    this.#over({ what: 'a stranger', protocol: 'TCP', port: own, ...expected, at: now() })
  }

  /** Asks over UDP, each question after the answer before it. @param once with one port, or with a new one each time */
  async #datagrams(count: number, once: boolean): Promise<void> {
    let client: UdpClient | undefined
    for (let i = 0; i < count; i++) {
      client ??= await udpClient(this.#doors.udp)
      const { port } = client
      const name = this.#name()
      const text = `${name} ${'x'.repeat(i * 60)}`
      this.begun += 1
      const answer = await client.ask(text, patienceMs).catch(() => 'nothing')
      if (answer !== text)
        this.#fail(`a datagram of ${text.length} bytes was answered ${answer.slice(0, 60)}`)
      const bytes = { sent: text.length, received: text.length }
      this.#over({ what: 'a datagram', protocol: 'UDP', port, status: 200, ...bytes, at: now() })
      if (once && i < count - 1) continue
      await client[Symbol.asyncDispose]()
      client = undefined
    }
  }

  /** @param before what comes before the session's own bytes */
  async #session(
    what: string,
    port: number,
    task: Task,
    count: number,
    before: string,
    act: (client: Client, name: string) => Promise<Told>,
  ): Promise<void> {
    const name = this.#name()
    this.begun += 1
    const client = await dial(port)
    const own = client.socket.localPort!
    const line = `${name} ${task} ${count}\n`
    const timer = setTimeout(() => client.reset(), patienceMs)
    await client.write(before + line)
    const { wrong, fleeting, sent, received, got } = await act(client, name)
    clearTimeout(timer)
    if (!client.socket.closed) {
      client.close()
      await new Promise((resolve) => client.socket.once('close', resolve))
    }
    const at = this.#peers.got.get(name)
    this.#peers.got.delete(name)
    if (wrong !== undefined) this.#fail(`${what}: ${wrong}`)
    if (at?.fault !== undefined) this.#fail(`${what}: its peer got something else: ${at.fault}`)
    if (got !== undefined && got !== (at?.bytes ?? 0))
      this.#fail(`${what}: its peer got ${at?.bytes ?? 'nothing'} of ${got} bytes`)
    const all = received === undefined ? undefined : received + line.length
    const own200 = { protocol: 'TCP', status: 200, sent, received: all, fleeting } as const
    // What comes back includes no line of the client's: the peer keeps it.
    this.#over({ what, port: own, ...own200, at: now() })
  }

  #name(): string {
    this.#serial += 1
    return `s${this.#serial.toString(36)}`
  }

  #over(seen: Seen): void {
    add(this.#seen, keyOf(seen), seen)
    this.#match(keyOf(seen))
  }

  #match(key: string): void {
    const [seen, lines] = [this.#seen.get(key), this.#records.get(key)]
    while (seen?.[0] !== undefined && lines?.[0] !== undefined) {
      const line = lines.shift()!
      // One that was gone before the program had looked at it has no record: this may be that of the next one on its port.
      const at = seen.findIndex((one) => !one.fleeting && fits(one, line))
      this.#judge(seen.splice(Math.max(0, at), 1)[0]!, line)
    }
    if (seen?.length === 0) this.#seen.delete(key)
    if (lines?.length === 0) this.#records.delete(key)
  }

  #judge(seen: Seen, line: SessionLine): void {
    this.judged += 1
    if (fits(seen, line)) return
    const { what, status, sent, received } = seen
    this.#fail(`${what}: logged ${JSON.stringify(line)}, and not ${status} ${sent} ${received}`)
  }
}

/** Whether a record says what a client has seen. */
function fits({ status, sent, received }: Seen, line: SessionLine): boolean {
  return (
    line.status === status &&
    (sent === undefined || line.sent === sent) &&
    (received === undefined || line.received === received)
  )
}

/** What a client says of its session. */
interface Told {
  readonly fleeting?: boolean
  readonly wrong?: string | undefined
  readonly sent?: number
  readonly received?: number
  /** Bytes that its peer must have got. */
  readonly got?: number
}

function keyOf({ protocol, port }: Pick<SessionLine, 'protocol' | 'port'>): string {
  return `${protocol} ${port}`
}

function add<T>(map: Map<string, T[]>, key: string, one: T): void {
  const list = map.get(key)
  if (list) list.push(one)
  else map.set(key, [one])
}

function header(dice: () => number): string {
  return dice() < 0.5 ? 'PROXY UNKNOWN\r\n' : 'PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n'
}
