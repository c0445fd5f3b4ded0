import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { children } from '../support/sidecar.ts'
import { type Deed, type Mood, now, type PeerOrder, type PeerTells } from './deed.ts'
import { Spans } from './spans.ts'

const program = new URL('./peers-process.ts', import.meta.url).pathname

/** What happened to peers that no deed tells of, by the peer's name. */
export interface Outages {
  /** Nobody listened, or connections were cut as the port was closed. */
  readonly shut: Spans
  /** The process was dead or halted. */
  readonly dead: Spans
  /** A connection without a request was ended. */
  readonly hungUp: Spans
}

/** The processes of scripted peers, and all that is known of what they did. */
export class Peers {
  /** `127.0.0.1:PORT` by name. */
  readonly addresses = new Map<string, string>()
  readonly outages: Outages = { shut: new Spans(), dead: new Spans(), hungUp: new Spans() }
  readonly #processes = new Map<string, ChildProcess>()
  readonly #homes = new Map<string, string>()
  readonly #onDeed: (deed: Deed) => void
  readonly #waiting = new Map<string, () => void>()

  /** @param onDeed told of what a peer did with a request */
  constructor(onDeed: (deed: Deed) => void) {
    this.#onDeed = onDeed
  }

  /** Starts a process with these peers. */
  async launch(home: string, names: readonly string[]): Promise<void> {
    // One that comes back has the port that it had.
    const words = names.map((name) => {
      const port = this.addresses.get(name)?.split(':')[1]
      return port === undefined ? name : `${name}=${port}`
    })
    const child = fork(program, words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    children.add(child)
    this.#processes.set(home, child)
    for (const name of names) this.#homes.set(name, home)
    const listening = new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error(`peers ${names} ended`)))
      child.on('message', (message) => {
        // Nobody else writes on this channel.
        const told = message as PeerTells
        if (told.kind === 'listening') {
          for (const [name, address] of Object.entries(told.addresses)) this.addresses.set(name, address)
          resolve()
        } else this.#hear(told)
      })
    })
    await listening
    for (const name of names) this.outages.dead.end(name, now())
  }

  order(name: string, order: PeerOrder): void {
    const child = this.#processes.get(this.#homes.get(name) ?? '')
    if (child?.connected) child.send(order)
  }

  setMood(name: string, mood: Mood): void {
    this.order(name, { kind: 'mood', peer: name, mood })
  }

  /** Settles when the request has come to a peer, which must have been asked to tell (`tell=`); false in time. */
  came(id: string, withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (yes: boolean) => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(yes)
      }
      const timer = setTimeout(() => end(false), withinMs)
      this.#waiting.set(id, () => end(true))
    })
  }

  /** Kills a process, as a crash would, and starts it anew on the same ports. */
  async crash(home: string, forMs: number): Promise<void> {
    const names = this.#of(home)
    const child = this.#processes.get(home)!
    for (const name of names) this.outages.dead.begin(name, now())
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    children.delete(child)
    await sleep(forMs)
    await this.launch(home, names)
  }

  /** Halts a process for a while: its kernel still accepts, and nobody answers. */
  async halt(home: string, forMs: number): Promise<void> {
    const names = this.#of(home)
    const child = this.#processes.get(home)!
    for (const name of names) this.outages.dead.begin(name, now())
    child.kill('SIGSTOP')
    await sleep(forMs)
    child.kill('SIGCONT')
    for (const name of names) this.outages.dead.end(name, now())
  }

  async stop(): Promise<void> {
    for (const child of this.#processes.values()) {
      children.delete(child)
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
  }

  #of(home: string): string[] {
    return [...this.#homes].filter(([, at]) => at === home).map(([name]) => name)
  }

  #hear(told: PeerTells): void {
    if (told.kind === 'deeds') for (const deed of told.deeds) this.#onDeed(deed)
    else if (told.kind === 'came') this.#waiting.get(told.id)?.()
    else if (told.kind === 'hung_up') this.outages.hungUp.mark(told.peer, told.at)
    else if (told.kind === 'shut') this.outages.shut.begin(told.peer, told.at)
    else if (told.kind === 'open') this.outages.shut.end(told.peer, told.at)
  }
}
