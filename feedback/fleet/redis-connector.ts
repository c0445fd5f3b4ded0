import { createConnection, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis'
import { hostPort, type RedisAddress } from './redis-address.ts'
import { refusalOf, UnfitError } from './redis-error.ts'

/** The sockets of one client, and of what it asks sentinels by, so that they can be closed at once and together. */
export class Sockets {
  readonly #open = new Set<Socket>()
  #greetings = 0
  #failure: Error | undefined
  #closed = false

  get closed(): boolean {
    return this.#closed
  }

  /** Whether some connection was accepted, and its TLS never answered. */
  get ungreeted(): boolean {
    return this.#greetings > 0
  }

  /** What went wrong last with one of them. */
  get failure(): Error | undefined {
    return this.#failure
  }

  open(host: string, port: number, tls: ConnectionOptions | undefined): Socket {
    if (this.#closed) throw new Error('Connection is closed.')
    // A name for the certificate must not be an address.
    const name = isIP(host) === 0 ? { servername: host } : {}
    const socket =
      tls === undefined ? createConnection({ host, port }) : connect({ host, port, ...name, ...tls })
    this.#open.add(socket)
    if (tls !== undefined) {
      socket.once('connect', () => {
        this.#greetings += 1
      })
      socket.once('secureConnect', () => {
        this.#greetings -= 1
      })
    }
    // Whoever reads the socket listens for itself; nobody may be listening any more.
    socket.on('error', (error) => {
      this.#failure = error
    })
    socket.once('close', () => this.#open.delete(socket))
    return socket
  }

  /** Closes them without waiting for the other side, and lets no more be opened. */
  async close(): Promise<void> {
    this.#closed = true
    const closing = [...this.#open].map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.once('close', () => resolve())
          socket.destroy()
        }),
    )
    await Promise.all(closing)
  }
}

/** Whom to ask where the master is. */
export interface SentinelQuestion {
  readonly master: string
  readonly sentinels: readonly RedisAddress[]
  readonly tls: ConnectionOptions | undefined
  /** How long one sentinel may take, milliseconds. */
  readonly timeout: number
  /** Which of them is asked first. */
  readonly first: number
}

type Connector = NonNullable<RedisOptions['Connector']>

/**
 * How ioredis opens its connections here: on sockets that are destroyed as soon as the client is done with, since a
 * server that is stuck would keep a socket that is ended politely for seconds.
 *
 * @param sockets undefined: each connection stands for itself
 * @param question undefined: the address is the one in the client's options
 */
export function connectorOn(sockets: Sockets | undefined, question?: SentinelQuestion): Connector {
  let tries = question?.first ?? 0
  return class extends AbstractConnector {
    readonly #options: RedisOptions
    #sockets = sockets ?? new Sockets()

    constructor(options: unknown) {
      super(0)
      // Whatever ioredis hands over are the options of its client.
      this.#options = options as RedisOptions
    }

    override async connect(): Promise<Socket> {
      if (sockets === undefined) this.#sockets = new Sockets()
      const own = this.#sockets
      this.connecting = true
      let { host = '127.0.0.1', port = 6379 } = this.#options
      if (question !== undefined) [host, port] = await masterOf(question, tries++, own)
      if (!this.connecting) throw new Error('Connection is closed.')
      const stream = own.open(host, port, this.#options.tls)
      this.stream = stream
      stream.once('error', (error) => {
        this.firstError = error
      })
      return stream
    }

    /** A replica may be what a sentinel with old news names. */
    override check(info: { role?: string } | undefined): boolean {
      return question === undefined || info?.role === undefined || info.role === 'master'
    }

    override disconnect(): void {
      this.connecting = false
      if (sockets === undefined) void this.#sockets.close()
      else this.stream?.destroy()
    }
  }
}

/** Asks one sentinel after the other. */
async function masterOf(
  question: SentinelQuestion,
  first: number,
  sockets: Sockets,
): Promise<[string, number]> {
  let failure: unknown
  for (let index = 0; index < question.sentinels.length && !sockets.closed; index++) {
    const sentinel = question.sentinels[(first + index) % question.sentinels.length]!
    try {
      return await askSentinel(question, sentinel, sockets)
    } catch (error) {
      failure = error
    }
  }
  throw failure ?? new Error('Connection is closed.')
}

async function askSentinel(
  { master, tls, timeout }: SentinelQuestion,
  { host, port, user, password }: RedisAddress,
  sockets: Sockets,
): Promise<[string, number]> {
  const client = new Redis({
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: null,
    connectTimeout: timeout,
    Connector: connectorOn(sockets),
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  })
  let failure: Error | undefined
  client.on('error', (error: Error) => {
    failure ??= error
  })
  const timer = setTimeout(() => {
    failure ??= Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
    client.disconnect()
  }, timeout)
  timer.unref()
  try {
    await client.connect()
    const answer: unknown = await client.call('SENTINEL', 'get-master-addr-by-name', master)
    if (!Array.isArray(answer)) {
      throw new UnfitError(`the sentinel at ${hostPort(host, port)} knows no master ${master}`)
    }
    return [String(answer[0]), Number(answer[1])]
  } catch (error) {
    const cause = failure ?? error
    if (/^unknown command/i.test(refusalOf(cause)?.text ?? '')) {
      throw new UnfitError(`what answers at ${hostPort(host, port)} is not a sentinel`)
    }
    throw cause
  } finally {
    clearTimeout(timer)
    client.disconnect()
  }
}
