import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** The child: it listens, says where, and then waits for its standard input instead of accepting. */
const program = `
const fs = require('node:fs')
const server = require('node:net').createServer((socket) => socket.on('error', () => {}).resume())
const options = JSON.parse(process.argv[1])
server.listen(options, () => {
  fs.writeSync(1, server.address().port + '\\n')
  const told = fs.readSync(0, Buffer.alloc(1))
  if (told === 0) process.exit()
  process.stdin.resume().on('end', () => process.exit())
})
`

export interface DeafOptions {
  readonly host?: string
  readonly port?: number
  /** One connection more than this finds room in the queue; 0 is as if nothing were said. */
  readonly backlog?: number
  readonly reusePort?: boolean
}

/** A peer in a process of its own that listens and does not accept: connections to it wait in the kernel's queue. */
export class DeafPeer implements AsyncDisposable {
  readonly port: number
  readonly host: string
  #child: ChildProcess
  #sockets: Socket[] = []

  constructor(child: ChildProcess, host: string, port: number) {
    this.#child = child
    this.host = host
    this.port = port
  }

  /** Connects so many times; settles when all of them are in the queue. */
  async fill(count: number, host = this.host): Promise<void> {
    const all = Array.from({ length: count }, () => connect(this.port, host))
    this.#sockets.push(...all)
    for (const socket of all) socket.on('error', () => {})
    await Promise.all(all.map((socket) => once(socket, 'connect')))
  }

  /** Begins to accept, for good. */
  hear(): void {
    this.#child.stdin!.write('.')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

export async function deafPeer(options: DeafOptions = {}): Promise<DeafPeer> {
  const { host = '127.0.0.1' } = options
  const listen = JSON.stringify({ port: 0, backlog: 64, ...options, host })
  // It ends with its standard input, so that a test that dies leaves nobody behind.
  const child = spawn(process.execPath, ['-e', program, listen], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await once(child.stdout!, 'data')
  return new DeafPeer(child, host, Number(String(line)))
}
