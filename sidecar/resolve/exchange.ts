import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type Question, queryOf, type Reply, randomId, replyTo } from './message.ts'

/** A server that is asked: an IP address. */
export interface DnsServer {
  readonly host: string
  readonly port: number
}

/** How asking one server ended. */
export type Exchanged =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'timeout' }
  /** It could not be reached. */
  | { readonly kind: 'error'; readonly error: string }

/** Asks one server one question. @param ms how long that may take in all */
export type AskServer = (server: DnsServer, question: Question, ms: number) => Promise<Exchanged>

/**
 * Over UDP from a port of its own, and over TCP where the answer does not fit. Whatever is not the answer is not
 * looked at: a forger has to know the port and the id, and to send from the server's address.
 */
export const askServer: AskServer = async (server, question, ms) => {
  const endsAt = performance.now() + ms
  const first = await overUdp(server, question, ms)
  if (first !== 'cut') return first
  return overTcp(server, question, Math.max(1, endsAt - performance.now()))
}

function overUdp({ host, port }: DnsServer, question: Question, ms: number): Promise<Exchanged | 'cut'> {
  const { promise, resolve } = Promise.withResolvers<Exchanged | 'cut'>()
  const id = randomId()
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const end = (how: Exchanged | 'cut') => {
    clearTimeout(timer)
    socket.removeAllListeners('message')
    try {
      socket.close()
    } catch {
      // It is closed already.
    }
    resolve(how)
  }
  const timer = setTimeout(() => end({ kind: 'timeout' }), ms).unref()
  socket.on('error', (error) => end({ kind: 'error', error: codeOf(error) }))
  socket.on('message', (message) => {
    const reply = replyTo(id, question, message)
    if (reply !== undefined) end(reply === 'cut' ? reply : { kind: 'reply', reply })
  })
  const failed = (error?: Error | null) => {
    if (error) end({ kind: 'error', error: codeOf(error) })
  }
  // Connected, the system hands over what comes from that server alone, and tells where nobody listens there.
  socket.connect(port, host, (error?: Error) => {
    // Where there is no way to the server: that is not told as an `error` then.
    if (error) failed(error)
    else socket.send(queryOf(id, question), failed)
  })
  socket.unref()
  return promise
}

function overTcp({ host, port }: DnsServer, question: Question, ms: number): Promise<Exchanged> {
  const { promise, resolve } = Promise.withResolvers<Exchanged>()
  const id = randomId()
  const socket = connect(port, host)
  const end = (how: Exchanged) => {
    clearTimeout(timer)
    socket.destroy()
    resolve(how)
  }
  const timer = setTimeout(() => end({ kind: 'timeout' }), ms).unref()
  let read = Buffer.alloc(0)
  socket.on('error', (error) => end({ kind: 'error', error: codeOf(error) }))
  socket.on('close', () => end({ kind: 'error', error: 'closed' }))
  socket.on('data', (chunk: Buffer) => {
    read = Buffer.concat([read, chunk])
    if (read.length < 2) return
    const length = read.readUInt16BE(0)
    if (read.length < 2 + length) return
    const reply = replyTo(id, question, read.subarray(2, 2 + length))
    // On a connection of one question nothing else is to come.
    end(reply === undefined || reply === 'cut' ? unreadable : { kind: 'reply', reply })
  })
  socket.on('connect', () => {
    const query = queryOf(id, question)
    const size = Buffer.alloc(2)
    size.writeUInt16BE(query.length)
    socket.write(Buffer.concat([size, query]))
  })
  socket.unref()
  return promise
}

const unreadable: Exchanged = { kind: 'error', error: 'unreadable answer' }

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
