import { setTimeout as wait } from 'node:timers/promises'
import type { Facts } from './admin/facts.ts'
import { type AdminServer, startAdmin } from './admin/server.ts'
import { formatAddress, listenAddress } from './config/address.ts'
import type { Model } from './config/model.ts'
import { pathOf } from './source.ts'
import { failureText } from './telemetry/system-error.ts'

interface Line {
  readonly address: ReturnType<typeof listenAddress>
  readonly readonly: boolean
}

interface Open {
  readonly line: Line
  readonly server: AdminServer
}

/** A change of the addresses that has been prepared: new ones are open, old ones are too. */
export interface AdminChange {
  /** Closes what is no longer wanted. */
  commit(): void
  /** Closes what was opened for it. */
  rollback(): void
}

/** The admin server over all reloads: addresses that stay are left alone. */
export class Admins {
  readonly #facts: Facts
  readonly #report: (text: string) => void
  #open = new Map<string, Open>()

  /** @param report told of errors that are ours, a line each */
  constructor(facts: Facts, report: (text: string) => void) {
    this.#facts = facts
    this.#report = report
  }

  /**
   * Opens what a configuration adds.
   * @throws Error `bind() to 127.0.0.1:9900 failed (98: Address already in use)`
   */
  async prepare(model: Model, prefix: string): Promise<AdminChange> {
    const wanted = new Map(linesOf(model, prefix).map((line) => [formatAddress(line.address), line]))
    const opened = new Map<string, Open>()
    const rollback = () => {
      for (const { server } of opened.values()) void server.close()
    }
    try {
      for (const [key, line] of wanted) if (!this.#open.has(key)) opened.set(key, await this.#start(line))
    } catch (error) {
      rollback()
      throw error
    }
    return { rollback, commit: () => this.#commit(wanted, opened) }
  }

  /** Stops listening everywhere; requests in progress have a second. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ server }) => server.close()))
    this.#open.clear()
  }

  #commit(wanted: ReadonlyMap<string, Line>, opened: ReadonlyMap<string, Open>): void {
    for (const [key, open] of this.#open) {
      const line = wanted.get(key)
      if (line === undefined) {
        this.#open.delete(key)
        // Not waited for: the reload may have been asked for by a request to this very server.
        void open.server.close()
      } else if (line.readonly !== open.line.readonly) void this.#replace(key, line, open)
    }
    for (const [key, open] of opened) this.#open.set(key, open)
  }

  /** The same address with other rights: it has to be closed before it can be opened again. */
  async #replace(key: string, line: Line, old: Open): Promise<void> {
    this.#open.delete(key)
    await old.server.close()
    for (let tries = 1; ; tries++) {
      try {
        this.#open.set(key, await this.#start(line))
        return
      } catch (error) {
        if (tries === 10) return this.#report(`admin: ${failureText(error)}`)
        await wait(100)
      }
    }
  }

  async #start(line: Line): Promise<Open> {
    try {
      return { line, server: await startAdmin([line], this.#facts, this.#report) }
    } catch (error) {
      // What is no system error says itself what it is.
      if (!(error instanceof Error && 'code' in error)) throw error
      throw new Error(`bind() to ${formatAddress(line.address)} failed (${failureText(error)})`)
    }
  }
}

function linesOf({ admin }: Model, prefix: string): Line[] {
  if (admin === 'off') return []
  return (admin ?? [{ address: '127.0.0.1:9900' }]).map((line) => {
    const address = listenAddress(line.address, 'admin')
    return {
      address: address.kind === 'unix' ? { kind: 'unix', path: pathOf(address.path, prefix) } : address,
      readonly: 'readonly' in line && line.readonly === true,
    }
  })
}
