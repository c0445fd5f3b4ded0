import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { clockOrigin } from '../../feedback/clock.ts'
import type { Plan } from './tail-plan.ts'

// Whatever ends this program, nobody is left behind.
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/** The peers of one method in a process of their own. */
export class PeersProcess {
  readonly ports: readonly number[]
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, ports: readonly number[]) {
    this.#child = child
    this.ports = ports
  }

  /** Starts it and waits until its peers listen. @throws when it ends before */
  static async start(plan: Plan): Promise<PeersProcess> {
    const program = new URL('./tail-peers.ts', import.meta.url)
    const child = fork(program, [JSON.stringify([plan, clockOrigin()])], { stdio: 'inherit' })
    children.add(child)
    child.once('exit', () => children.delete(child))
    const ended = once(child, 'exit').then(([code, signal]) => {
      throw new Error(`bench: the peers ended with ${code ?? signal}`)
    })
    // Once they listen, nobody waits for this any more.
    ended.catch(() => {})
    const [ports] = await Promise.race([once(child, 'message'), ended])
    // tail-peers.ts tells a list of numbers.
    return new PeersProcess(child, ports as readonly number[])
  }

  /** @param at when the measured part begins, by `monotonic` */
  begin(at: number): void {
    this.#child.send(at)
  }

  async stop(): Promise<void> {
    if (!children.has(this.#child)) return
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }
}
