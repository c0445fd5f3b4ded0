import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Asking, Question, Target } from '../../probes/probe.ts'

/** What a probe is asked with: a signal that leaves it two seconds, unless told otherwise. */
export function asking(over: Partial<Asking> = {}): Asking {
  return { question: undefined, signal: AbortSignal.timeout(2000), failing: false, ...over }
}

/** A plain request. */
export function question(over: Partial<Question> = {}): Question {
  return {
    method: 'GET',
    target: '/health',
    headers: ['Host', 'shop'],
    connectTimeout: 1000,
    maxHead: 16_384,
    ...over,
  }
}

export function tcpTarget(port: number, host = '127.0.0.1'): Target {
  return { name: `${host}:${port}`, address: { kind: 'tcp', host, port } }
}

export function unixTarget(path: string): Target {
  return { name: `unix:${path}`, address: { kind: 'unix', path } }
}

/** An answer in a line: the verdict of the kind, why there is no answer, and what it says to people. */
export function told({ passed, failure, detail }: Answer): string {
  const verdict = passed === undefined ? 'open' : passed ? 'passed' : 'not passed'
  return `${verdict}, ${failure ? `${failure.ending} ${failure.reason}, ` : ''}${detail}`
}

/** A TCP server that does to each connection what its script says, and knows which of them are still there. */
export class RawPeer {
  readonly sockets = new Set<Socket>()
  /** Connections accepted, ever. */
  accepted = 0
  port = 0
  #server: Server

  constructor(script: (socket: Socket) => void) {
    this.#server = createServer((socket) => {
      this.accepted += 1
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
      socket.on('error', () => {})
      // What is sent to it is read, so that it sees the end.
      socket.resume()
      script(socket)
    })
  }

  async listen(host = '127.0.0.1', path?: string, port = 0): Promise<this> {
    this.#server.listen(path === undefined ? { host, port } : { path })
    await once(this.#server, 'listening')
    this.#server.unref()
    const at = this.#server.address()
    if (at !== null && typeof at !== 'string') this.port = at.port
    return this
  }

  get target(): Target {
    return tcpTarget(this.port)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.sockets) socket.destroy()
    await closed
  }
}

/** Starts a server on a free port of 127.0.0.1. */
export function rawPeer(script: (socket: Socket) => void = () => {}): Promise<RawPeer> {
  return new RawPeer(script).listen()
}

/** Connections of this process, both ends of those within it, and attempts to connect. */
export function openSockets(): number {
  return process
    .getActiveResourcesInfo()
    .filter((name) => /^(TCPSocketWrap|TCPConnectWrap|PipeWrap)$/.test(name)).length
}

/** Waits until no more sockets are open than there were before; fails when that does not come about. */
export async function socketsBackTo(before: number): Promise<void> {
  for (const end = performance.now() + 2000; openSockets() > before; ) {
    assert.ok(performance.now() < end, `${openSockets() - before} sockets are left open`)
    await sleep(2)
  }
}
