import type { RecentBatch } from '../feedback/feed.ts'
import type { Tally } from '../feedback/tally.ts'
import type { Facts } from './admin/facts.ts'
import { closeLeaving } from './build/groups.ts'
import type { Running } from './build/running.ts'
import type { Drainable } from './drain.ts'
import { type Listens, listensOf } from './listens.ts'
import { Service } from './service.ts'
import type { Setup } from './setup.ts'
import { reopenLogs } from './telemetry/access-log.ts'
import { AttemptFeed } from './telemetry/attempt-feed.ts'
import { lastLinesMs, logFiles } from './telemetry/log-files.ts'
import { startTracing, stopTracing } from './telemetry/tracing.ts'
import { version } from './version.ts'

/** Who serves clients: this thread, or others. */
export interface Crew {
  /**
   * Makes sure that these addresses can be listened on. Nothing is served by new routes yet.
   * @throws ListenError; then everything stays as it was
   */
  open(listens: Listens): Promise<void>
  /**
   * Serves by a configuration from now on; resolves once everybody does.
   * @param setup the same for other threads; it is made only where there are any
   * @throws Error when a thread cannot, at the start
   */
  use(running: Running, setup: () => Setup): Promise<void>
  /** Parts of a drain; see drain.ts. */
  begin(): void
  close(): void
  closeIdle(): void
  endTunnels(): void
  destroy(): void
  /**
   * Tells of attempts as they end, from all threads, replaced ones too; in place of whoever was told before.
   * @param hear undefined: nobody is told any more, and nothing is gathered
   */
  watch(hear: ((batch: RecentBatch) => void) | undefined): void
  /** Opens log files anew. */
  reopen(): void
  /** The end: what logs hold is written. Never rejects, and takes two seconds at most. */
  leave(): Promise<void>
  readonly threads: { readonly running: number; readonly replaced: number }
}

/** A crew as a drain sees it. */
export function drainable(crew: Crew, tally: Tally): Drainable {
  return {
    begin: () => crew.begin(),
    close: () => crew.close(),
    closeIdle: () => crew.closeIdle(),
    requests() {
      const { requests, tunnels } = tally.all()
      return Math.max(0, requests - tunnels)
    },
    tunnels: () => tally.all().tunnels,
    endTunnels: () => crew.endTunnels(),
    destroy: () => crew.destroy(),
  }
}

/** This thread does it all. */
export class OneThread implements Crew {
  readonly threads = { running: 1, replaced: 0 }
  readonly #facts: Facts
  readonly #tally: Tally
  readonly #feed = new AttemptFeed()
  #service: Service | undefined
  /** What is to be listened on, as long as no routes are known. */
  #first: Listens | undefined

  constructor(facts: Facts, tally: Tally) {
    this.#facts = facts
    this.#tally = tally
  }

  async open(listens: Listens): Promise<void> {
    if (this.#service) await this.#service.listen(listens)
    else this.#first = listens
  }

  async use(running: Running): Promise<void> {
    if (this.#service === undefined) {
      await startTracing({ version, startedAt: this.#facts.startedAt })
      this.#service = new Service(running, this.#facts, { threads: 1, thread: 0, tally: this.#tally })
      await this.#service.listen(this.#first ?? listensOf(running))
    } else {
      // They were opened by the rehearsal of this configuration, whose zones and logs are not those in force.
      await this.#service.listen(listensOf(running))
    }
    this.#service.use(running)
    closeLeaving(running.leaving)
    running.replaced?.close()
  }

  begin(): void {
    this.#service?.begin()
  }

  close(): void {
    this.#service?.close()
  }

  closeIdle(): void {
    this.#service?.closeIdle()
  }

  endTunnels(): void {
    this.#service?.endTunnels()
  }

  destroy(): void {
    this.#service?.destroy()
  }

  watch(hear: ((batch: RecentBatch) => void) | undefined): void {
    this.#feed.watch(hear)
  }

  reopen(): void {
    reopenLogs()
  }

  async leave(): Promise<void> {
    await stopTracing()
    await logFiles.settle(lastLinesMs)
  }
}
