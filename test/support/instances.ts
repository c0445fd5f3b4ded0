import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, dial } from './client.ts'
import { eventually, type PeerStatus } from './invariants.ts'
import { type Sidecar, type SidecarOptions, start } from './sidecar.ts'

/** A group in the status tree, with what the fleet says of it. */
export interface SharedGroup {
  readonly peers: Readonly<Record<string, SharedPeer>>
  readonly evenkeel: { readonly requests: number; readonly retries: number }
  /** Undefined: it is not shared. */
  readonly fleet?: { readonly members?: number; readonly age?: number; readonly resets: number }
}

/** A peer in the status tree, with what the fleet says of it. */
export interface SharedPeer extends PeerStatus {
  readonly evenkeel: { readonly share: number; readonly avg: number; readonly ok: number }
  /** Undefined: nothing has been heard of it. */
  readonly fleet?: {
    readonly members: number
    readonly current: number
    readonly answers: number
    readonly good: number
    readonly avg?: number
    readonly stuck: number
    readonly lease?: number
  }
}

/** Several instances of the real program that share through one Redis, each with ports of its own. */
export class Instances implements AsyncDisposable {
  readonly list: Sidecar[] = []
  readonly #text: string
  readonly #options: SidecarOptions

  constructor(text: string, options: SidecarOptions) {
    this.#text = text
    this.#options = options
  }

  /** Starts further ones, side by side. */
  async add(count: number): Promise<void> {
    const begun = await Promise.allSettled(
      Array.from({ length: count }, () => start(this.#text, this.#options)),
    )
    for (const one of begun) if (one.status === 'fulfilled') this.list.push(one.value)
    for (const one of begun) if (one.status === 'rejected') throw one.reason
  }

  at(index: number): Sidecar {
    const one = this.list[index]
    if (one === undefined) throw new Error(`there is no instance ${index}`)
    return one
  }

  /** Waits until every one has heard of so many. */
  async together(group = 'u', members = this.list.length): Promise<void> {
    await eventually(
      `each knows ${members} instances`,
      async () => {
        const groups = await Promise.all(this.list.map((one) => sharedGroup(one, group)))
        return groups.every(({ fleet }) => fleet?.members === members)
      },
      10_000,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.list.map((one) => one.stop()))
  }
}

/**
 * Starts instances with one configuration, and waits until they know of each other.
 * @param text as for `start`; it names the fleet
 * @param group one that they share
 */
export async function instances(
  count: number,
  text: string,
  options: SidecarOptions & { readonly group?: string } = {},
): Promise<Instances> {
  const all = new Instances(text, options)
  try {
    await all.add(count)
    await all.together(options.group)
  } catch (error) {
    await all[Symbol.asyncDispose]()
    throw error
  }
  return all
}

export async function sharedGroup(sidecar: Sidecar, group = 'u'): Promise<SharedGroup> {
  return sidecar.json<SharedGroup>(`/status/http/upstreams/${group}/`)
}

export async function sharedPeer(sidecar: Sidecar, peer: string, group = 'u'): Promise<SharedPeer> {
  const found = (await sharedGroup(sidecar, group)).peers[peer]
  if (found === undefined) throw new Error(`no peer ${peer} in ${group}`)
  return found
}

/** A client that asks one request after the other until it is stopped. */
export class Visitor {
  /** Answers by status. */
  readonly statuses = new Map<number, number>()
  /** Answers by body, of those with status 200. */
  readonly bodies = new Map<string, number>()
  /** Connections that ended without an answer. */
  readonly failures: string[] = []
  #over = false
  #client: Client | undefined
  readonly #port: number
  readonly #target: string
  readonly #pauseMs: number
  readonly #done: Promise<void>

  /** @param pauseMs between an answer and the next request */
  constructor(port: number, pauseMs: number, target = '/') {
    this.#port = port
    this.#target = target
    this.#pauseMs = pauseMs
    this.#done = this.#run()
  }

  get answers(): number {
    return [...this.statuses.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Everything that was not answered with 200. */
  get complaints(): string[] {
    const bad = [...this.statuses].filter(([status]) => status !== 200)
    return [...bad.map(([status, count]) => `${status}: ${count}`), ...this.failures]
  }

  async #run(): Promise<void> {
    while (!this.#over) {
      try {
        this.#client ??= await dial(this.#port)
        const reply = await this.#client.ask(this.#target)
        this.statuses.set(reply.status, (this.statuses.get(reply.status) ?? 0) + 1)
        if (reply.status === 200) this.bodies.set(reply.text, (this.bodies.get(reply.text) ?? 0) + 1)
        if (reply.header('connection') === 'close') this.#hangUp()
      } catch (error) {
        if (!this.#over) this.failures.push(String(error))
        this.#hangUp()
      }
      await sleep(this.#pauseMs)
    }
    this.#hangUp()
  }

  #hangUp(): void {
    this.#client?.close()
    this.#client = undefined
  }

  /** Ends it with the answer that it waits for. */
  async stop(): Promise<void> {
    this.#over = true
    await this.#done
  }

  /** Ends it at once. */
  async leave(): Promise<void> {
    this.#over = true
    this.#hangUp()
    await this.#done
  }
}

/** Clients of all instances. */
export class Visitors implements AsyncDisposable {
  readonly list: readonly Visitor[]

  /** @param each how many an instance gets */
  constructor(sidecars: readonly Sidecar[], each: number, pauseMs: number, target?: string) {
    this.list = sidecars.flatMap(({ port }) =>
      Array.from({ length: each }, () => new Visitor(port, pauseMs, target)),
    )
  }

  /** Ends them. @returns everything that went wrong */
  async stop(): Promise<string[]> {
    await Promise.all(this.list.map((one) => one.stop()))
    return this.list.flatMap(({ complaints }) => complaints)
  }

  /** A test that failed may have peers that never answer. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.list.map((one) => one.leave()))
  }
}
