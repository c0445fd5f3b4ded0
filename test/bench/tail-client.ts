import { connect, type Socket } from 'node:net'

/**
 * Told how a request ended.
 * @param status undefined when the connection broke
 */
export type Done = (status: number | undefined) => void

interface Asked {
  readonly bytes: string
  readonly done: Done
}

/** Asks one server over connections that it keeps, one request at a time on each. It costs little, as the driver must. */
export class KeptClient {
  readonly #port: number
  readonly #limit: number
  readonly #all = new Set<Socket>()
  readonly #idle: Connection[] = []
  readonly #line: Asked[] = []

  /** @param limit of connections; requests beyond wait for one */
  constructor(port: number, limit: number) {
    this.#port = port
    this.#limit = limit
  }

  get(path: string, done: Done): void {
    const asked = { bytes: `GET ${path} HTTP/1.1\r\nHost: tail\r\n\r\n`, done }
    const kept = this.#idle.pop()
    if (kept) kept.ask(asked)
    else if (this.#all.size < this.#limit) this.#open().ask(asked)
    else this.#line.push(asked)
  }

  /** Opens connections ahead of need. */
  open(count: number): void {
    for (let i = 0; i < count; i++) this.#idle.push(this.#open())
  }

  close(): void {
    for (const socket of this.#all) socket.destroy()
  }

  #open(): Connection {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#all.add(socket)
    const connection = new Connection(socket, () => {
      const next = this.#line.shift()
      if (next) connection.ask(next)
      else this.#idle.push(connection)
    })
    socket.once('close', () => {
      this.#all.delete(socket)
      const place = this.#idle.indexOf(connection)
      if (place >= 0) this.#idle.splice(place, 1)
      connection.lost()
      const next = this.#all.size < this.#limit ? this.#line.shift() : undefined
      if (next) this.#open().ask(next)
    })
    return connection
  }
}

class Connection {
  readonly #socket: Socket
  readonly #free: () => void
  #done: Done | undefined
  #text = ''

  /** @param free told when the next request may be asked */
  constructor(socket: Socket, free: () => void) {
    this.#socket = socket
    this.#free = free
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#heard(text))
    // `close` follows.
    socket.on('error', () => {})
  }

  ask({ bytes, done }: Asked): void {
    this.#done = done
    this.#socket.write(bytes, 'latin1')
  }

  lost(): void {
    const done = this.#done
    this.#done = undefined
    done?.(undefined)
  }

  #heard(text: string): void {
    this.#text += text
    const end = this.#text.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#text.slice(0, end + 2)
    const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1]
    if (length === undefined) {
      // Nobody here answers without; better a visible error than a wait without end.
      this.#socket.destroy()
      return
    }
    if (this.#text.length < end + 4 + Number(length)) return
    this.#text = ''
    const done = this.#done
    this.#done = undefined
    if (/\r\nconnection: *close\r\n/i.test(head)) this.#socket.destroy()
    else this.#free()
    done?.(Number(head.slice(9, 12)))
  }
}
