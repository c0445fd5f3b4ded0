import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type End, Inbox } from './inbox.ts'
import {
  type Body,
  chunk,
  type Fields,
  type Framing,
  type Head,
  headText,
  readBody,
  readHead,
} from './message.ts'

/** Where to connect: a port of 127.0.0.1, `HOST:PORT`, `[V6]:PORT`, or the path of a Unix socket. */
export type Where = number | string

/** A response as its bytes came. */
export class Reply {
  readonly head: Head
  readonly version: string
  readonly status: number
  readonly body: Buffer
  readonly trailers: readonly string[]
  /** Whether the end of the body was seen as its framing has it. */
  readonly complete: boolean
  /** Heads of the 1xx responses that came first. */
  readonly interim: readonly Head[]

  constructor(head: Head, body: Body, interim: readonly Head[]) {
    this.head = head
    this.version = head.start.slice(0, 8)
    this.status = Number(head.start.slice(9, 12))
    this.body = body.body
    this.trailers = body.trailers
    this.complete = body.complete
    this.interim = interim
  }

  get text(): string {
    return this.body.toString('latin1')
  }

  header(name: string): string | undefined {
    return this.head.header(name)
  }
}

/** What to ask. */
export interface Asked {
  readonly method?: string
  readonly headers?: Fields
  /** Sent with a length, or in these pieces as chunks when it is a list. */
  readonly body?: string | Buffer | readonly (string | Buffer)[]
  readonly version?: '1.0' | '1.1'
}

/** A client that writes what it is told, byte for byte, and reads what comes. */
export class Client {
  readonly socket: Socket
  readonly inbox: Inbox

  constructor(socket: Socket) {
    this.socket = socket
    this.inbox = new Inbox(socket)
  }

  /** Settles when the other side has ended the connection. */
  get closed(): Promise<End> {
    return this.inbox.closed
  }

  /** Writes bytes as they are; settles when the socket took them (or is gone). */
  async write(bytes: string | Buffer): Promise<void> {
    if (this.socket.destroyed) return
    await new Promise<void>((resolve) => {
      this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => resolve())
    })
  }

  /** Half-closes: FIN, and goes on reading. */
  end(): void {
    this.socket.end()
  }

  /** Ends with RST. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  close(): void {
    this.socket.destroy()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** The bytes of a request. */
  static bytes(target: string, { method = 'GET', headers = {}, body, version = '1.1' }: Asked = {}): Buffer {
    const fields: Record<string, string | number | readonly string[]> = {}
    if (!('Host' in headers)) fields['Host'] = 'test'
    Object.assign(fields, headers)
    const pieces: Buffer[] = []
    if (Array.isArray(body)) {
      fields['Transfer-Encoding'] = 'chunked'
      pieces.push(...body.map(chunk), Buffer.from('0\r\n\r\n'))
    } else if (body !== undefined) {
      // Not a list, so one piece.
      pieces.push(Buffer.from(body as string))
      fields['Content-Length'] = pieces[0]!.length
    }
    const head = headText(`${method} ${target} HTTP/${version}`, fields)
    return Buffer.concat([Buffer.from(head, 'latin1'), ...pieces])
  }

  /** Sends a request and reads its response; the connection stays open for another. */
  async ask(target: string, asked: Asked = {}): Promise<Reply> {
    await this.write(Client.bytes(target, asked))
    return this.reply(asked.method)
  }

  /**
   * The next response, after its interim ones.
   * @param method what it answers: decides whether a body follows
   */
  async reply(method = 'GET'): Promise<Reply> {
    const { head, interim } = await this.head()
    return new Reply(head, await readBody(this.inbox, framing(head, method)), interim)
  }

  /** The head of the next final response, after its interim ones; its body is left unread. */
  async head(): Promise<{ head: Head; interim: readonly Head[] }> {
    const interim: Head[] = []
    for (;;) {
      const head = await readHead(this.inbox)
      if (!head) {
        const unread = JSON.stringify(this.inbox.unread.toString('latin1').slice(0, 200))
        throw new Error(`connection ended (${this.inbox.ended}) without a response; unread: ${unread}`)
      }
      const status = Number(head.start.slice(9, 12))
      if (status >= 200 || status === 101) return { head, interim }
      interim.push(head)
    }
  }
}

/** How the end of a response's body is marked (RFC 9112 section 6.3). */
export function framing(head: Head, method: string): Framing {
  const status = Number(head.start.slice(9, 12))
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 0
  if (head.header('transfer-encoding') !== undefined) return 'chunked'
  const length = head.header('content-length')
  return length === undefined ? 'close' : Number(length)
}

/**
 * Opens a connection.
 * @param from address to come from; any of 127.0.0.0/8 will do towards a loopback address
 */
export async function dial(where: Where, from?: string): Promise<Client> {
  const local = from === undefined ? {} : { localAddress: from }
  const socket = connect({ ...place(where), ...local, allowHalfOpen: true, noDelay: true })
  const client = new Client(socket)
  await Promise.race([once(socket, 'connect'), client.closed])
  if (client.inbox.ended) throw new Error(`no connection to ${where}`)
  return client
}

function place(where: Where): { port: number; host: string } | { path: string } {
  if (typeof where === 'number') return { port: where, host: '127.0.0.1' }
  if (where.startsWith('/')) return { path: where }
  const colon = where.lastIndexOf(':')
  return { port: Number(where.slice(colon + 1)), host: where.slice(0, colon).replace(/^\[|\]$/g, '') }
}

/** One request on a connection of its own. */
export async function ask(where: Where, target = '/', asked: Asked = {}): Promise<Reply> {
  const client = await dial(where)
  try {
    return await client.ask(target, asked)
  } finally {
    client.close()
  }
}

/** Sends bytes on a connection of their own and collects all that comes until the other side ends it. */
export async function exchange(where: Where, bytes: string | Buffer): Promise<string> {
  const client = await dial(where)
  let open = false
  const timer = setTimeout(() => {
    open = true
    client.close()
  }, 5000)
  await client.write(bytes)
  const { body } = await readBody(client.inbox, 'close')
  clearTimeout(timer)
  client.close()
  const said = body.toString('latin1')
  if (open) throw new Error(`the connection was left open after ${JSON.stringify(said.slice(0, 500))}`)
  return said
}

/** Opens a WebSocket; on 101 the client's connection is the tunnel. */
export async function webSocket(where: Where, target = '/', headers: Fields = {}) {
  const key = randomBytes(16).toString('base64')
  const client = await dial(where)
  await client.write(
    Client.bytes(target, {
      headers: {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': key,
        ...headers,
      },
    }),
  )
  const { head } = await client.head()
  return { client, head, status: Number(head.start.slice(9, 12)), accepted: acceptKey(key) }
}

/** What `Sec-WebSocket-Accept` must say to a key (RFC 6455 section 4.2.2). */
export function acceptKey(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}
