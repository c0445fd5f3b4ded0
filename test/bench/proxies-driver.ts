import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { children } from '../support/sidecar.ts'
import type { Order, Reply } from './proxies-load.ts'
import type { Scenario } from './proxies-scenarios.ts'
import type { Turn, TurnOptions } from './proxies-turn.ts'

/** An order without its number. */
type Words = Order extends infer One ? (One extends Order ? Omit<One, 'id'> : never) : never

/** The process of load and peer, seen from the one that measures. */
export class Driver implements AsyncDisposable {
  readonly peerPort: number
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, { resolve(turn: Turn | undefined): void; reject(error: Error): void }>()
  #orders = 0

  private constructor(child: ChildProcess, peerPort: number) {
    this.#child = child
    this.peerPort = peerPort
    child.on('message', (reply: Reply) => this.#heard(reply))
    child.once('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the process of the load ended'))
    })
  }

  /** @param core the one that it is kept on; undefined: whichever is free */
  static async start(core: number | undefined): Promise<Driver> {
    const file = new URL('./proxies-load.ts', import.meta.url).pathname
    const command = [...onCore(core), process.execPath, file]
    const child = spawn(command[0] ?? '', command.slice(1), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    children.add(child)
    // The first word of the process is the port of its peer.
    const [first] = (await once(child, 'message')) as [{ peerPort: number }]
    return new Driver(child, first.peerPort)
  }

  async open(port: number, { ask, connections, front }: Scenario): Promise<void> {
    await this.#order({ open: { port, ask, connections, ...(front && { front }) } })
  }

  async measure(port: number, options: TurnOptions): Promise<Turn> {
    const turn = await this.#order({ measure: { port, ...options } })
    if (!turn) throw new Error('the load has nothing to tell')
    return turn
  }

  async close(port: number): Promise<void> {
    await this.#order({ close: { port } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    children.delete(this.#child)
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  #order(words: Words): Promise<Turn | undefined> {
    this.#orders += 1
    const id = this.#orders
    return new Promise<Turn | undefined>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ id, ...words })
    }).finally(() => this.#waiting.delete(id))
  }

  #heard(reply: Reply): void {
    if (!('id' in reply)) return
    const waiting = this.#waiting.get(reply.id)
    if ('error' in reply) waiting?.reject(new Error(reply.error))
    else waiting?.resolve(reply.turn)
  }
}

/** The beginning of a command that is kept on a core. */
export function onCore(core: number | undefined): string[] {
  return core === undefined ? [] : ['taskset', '-c', String(core)]
}
