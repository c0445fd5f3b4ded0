import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Backend, Exchange } from './backend.ts'
import { type Sidecar, type SidecarOptions, start } from './sidecar.ts'

/** A request as the access log has it. */
export interface Logged {
  readonly status: number
  /** One address an attempt; the group's name where nobody was eligible. */
  readonly addresses: readonly string[]
  readonly statuses: readonly string[]
  /** One word an attempt, `-` for plain success. */
  readonly reasons: readonly string[]
  /** The request line. */
  readonly request: string
}

/** Reasons of attempts that a peer cannot have seen a request of. */
const unseen = new Set(['refused', 'unreachable', 'timeout_connect', 'dns', 'tls', 'stale'])

/** Reasons of attempts whose answer came, as far as its head. */
const answered = /^(?:-|http_\d+|body_\w+)$/

/** Lines of an error log that no traffic may bring about. */
export function alarmsIn(stderr: string): string[] {
  return stderr.split('\n').filter((line) => /\[(alert|emerg|crit)\]|Unhandled/i.test(line))
}

/** How long what is in progress may take to be counted as over, milliseconds. */
const settleMs = 5000

/** The program in front of scripted peers, with an access log that tells every attempt. */
export class Lab {
  readonly sidecar: Sidecar
  readonly port: number
  #backends: readonly Backend[]
  #records = 0
  /** How many of its requests are accounted for, by peer. */
  #seen = new Map<Backend, number>()

  constructor(sidecar: Sidecar, backends: readonly Backend[]) {
    this.sidecar = sidecar
    this.port = sidecar.port
    this.#backends = backends
  }

  /** Looks at the requests that no `settle` has accounted for, and stops the program. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.#asked() > 0 && this.sidecar.running) await this.settle(undefined, { seen: false })
    } finally {
      await this.sidecar[Symbol.asyncDispose]()
    }
  }

  /** Starts counting anew, so that a test that failed does not fail the ones after it. */
  async begin(): Promise<void> {
    await this.#wait(0, true)
    this.#records = (await this.records()).length
    this.#account()
  }

  /** Every record of the access log so far. */
  async records(): Promise<Logged[]> {
    const text = await readFile(join(this.sidecar.folder, 'access.log'), 'latin1').catch(() => '')
    return text.split('\n').filter(Boolean).map(parse)
  }

  /** The last record of the access log; waits for `count` records in all since the last `settle`. */
  async record(count = 1): Promise<Logged> {
    const records = await this.#wait(count)
    return records.at(-1)!
  }

  /** The peers' part of the status tree of a group. */
  async peers(group: string): Promise<Record<string, PeerStatus>> {
    return this.sidecar.json(`/status/http/upstreams/${group}/peers/`)
  }

  /**
   * Asserts what must hold after any traffic: nothing is counted as in progress any more, the process lives and has
   * raised no alarm, each client request has one record, and the attempts in those records are the requests that the
   * peers have seen. Counts go from the last call.
   * @param requests what clients have asked since; undefined when a test cannot know (then records are not counted)
   * @param options `seen` false where a peer may have missed what was sent to it (the client left in time)
   */
  async settle(requests: number | undefined, { seen = true }: { seen?: boolean } = {}): Promise<void> {
    await this.idle()
    assert.ok(this.sidecar.running, `the program ended:\n${this.sidecar.stderr}`)
    assert.deepEqual(alarmsIn(this.sidecar.stderr), [])
    const records = await this.#wait(requests ?? 0, seen)
    if (requests !== undefined) {
      assert.equal(records.length, requests, `records:\n${records.map((r) => JSON.stringify(r)).join('\n')}`)
    }
    const attempts = records.reduce((sum, record) => sum + sentTo(record), 0)
    for (const { status, request } of records)
      assert.ok(status >= 100 && status <= 999, `${status} ${request}`)
    if (seen) {
      assert.equal(attempts, this.#asked(), 'attempts in the log and requests seen by the peers')
      this.#compare(records)
    }
    for (const backend of this.#backends) assert.deepEqual(backend.errors, [])
    this.#records += records.length
    this.#account()
  }

  /** Waits until nothing is counted as in progress, in the status tree and in the metrics. */
  async idle(): Promise<void> {
    const end = performance.now() + settleMs
    for (;;) {
      const busy = [...(await this.#statusBusy()), ...(await this.#metricsBusy())]
      if (busy.length === 0) return
      if (performance.now() > end) assert.deepEqual(busy, [], 'still counted as in progress')
      await sleep(20)
    }
  }

  /** Waits until all connections of clients are gone. */
  async left(): Promise<void> {
    await eventually('all connections of clients are gone', async () => {
      const { active, idle } = await this.sidecar.json<{ active: number; idle: number }>(
        '/status/connections',
      )
      return active + idle === 0
    })
  }

  async #statusBusy(): Promise<string[]> {
    const tree = await this.sidecar.json<StatusTree>('/status/')
    const peers = Object.entries(tree.http.upstreams).flatMap(([group, { peers }]) =>
      Object.entries(peers).map(([name, peer]) => [`${group} ${name}`, peer.selected.current] as const),
    )
    const zones = Object.entries(tree.http.server_zones).map(
      ([name, zone]) => [name, zone.requests.processing] as const,
    )
    return [...peers, ...zones].filter(([, count]) => count !== 0).map(([name, count]) => `${name}: ${count}`)
  }

  async #metricsBusy(): Promise<string[]> {
    const text = await (await fetch(`${this.sidecar.admin}/metrics`)).text()
    const gauges = text
      .split('\n')
      .filter((line) => /^evenkeel_\w*(in_flight|in_progress|waiting)\w*[{ ]/.test(line))
    assert.ok(gauges.length > 0, 'no gauge of what is in progress')
    return gauges.filter((line) => !line.endsWith(' 0'))
  }

  /** Requests that peers have seen and that are not accounted for. */
  #fresh(backend: Backend): readonly Exchange[] {
    return backend.requests.slice(this.#seen.get(backend) ?? 0)
  }

  #asked(): number {
    return this.#backends.reduce((sum, backend) => sum + this.#fresh(backend).length, 0)
  }

  #account(): void {
    for (const backend of this.#backends) this.#seen.set(backend, backend.requests.length)
  }

  /** What the log says that a peer was asked and has answered is what the peer has parsed and sent. */
  #compare(records: readonly Logged[]): void {
    const known = new Map(
      this.#backends.map((one) => [
        one.address,
        this.#fresh(one).map(({ method, status }) => `${method} ${status}`),
      ]),
    )
    for (const { addresses, statuses, reasons, request } of records) {
      for (const [i, address] of addresses.entries()) {
        if (!answered.test(reasons[i] ?? '-')) continue
        const of = known.get(address)
        const said = `${request.slice(0, request.indexOf(' '))} ${statuses[i]}`
        const at = of?.indexOf(said) ?? 0
        assert.ok(at >= 0, `${address} has no request "${said}" for "${request}": ${of}`)
        of?.splice(at, 1)
      }
    }
  }

  /** The records since the last `settle`, once there are enough of them, or as they are when time is up. */
  async #wait(count: number, seen = false): Promise<Logged[]> {
    const end = performance.now() + settleMs
    for (;;) {
      const records = (await this.records()).slice(this.#records)
      const attempts = records.reduce((sum, record) => sum + sentTo(record), 0)
      const enough = records.length >= count && (!seen || attempts >= this.#asked())
      if (enough || performance.now() > end) return records
      await sleep(10)
    }
  }
}

/** What tests read of a peer in the status tree. */
export interface PeerStatus {
  readonly state: string
  readonly backup: boolean
  readonly weight: number
  readonly selected: { readonly current: number; readonly total: number }
  readonly responses: Readonly<Record<string, number>>
  readonly health: {
    readonly fails: number
    readonly unavailable: number
    readonly header_time: number
    readonly response_time: number
  }
}

interface StatusTree {
  readonly http: {
    readonly upstreams: Readonly<Record<string, { readonly peers: Readonly<Record<string, PeerStatus>> }>>
    readonly server_zones: Readonly<Record<string, { readonly requests: { readonly processing: number } }>>
  }
}

function parse(line: string): Logged {
  const [status = '', addresses = '', statuses = '', reasons = '', ...request] = line.split('|')
  const list = (text: string) => (text === '-' || text === '' ? [] : text.split(/, | : /))
  return {
    status: Number(status),
    addresses: list(addresses),
    statuses: list(statuses),
    reasons: reasons === '' ? [] : reasons.split(/, | : /),
    request: request.join('|'),
  }
}

/** How many of a request's attempts a peer must have seen. */
function sentTo(record: Logged): number {
  return record.addresses.filter(
    (address, i) => /[:/]/.test(address) && !unseen.has(record.reasons[i] ?? '-'),
  ).length
}

/**
 * Starts the program on what goes into `http`, with a log of the attempts.
 * @param body nginx syntax; `PORT` and the like stand for free ports
 */
export async function lab(
  body: string,
  backends: readonly Backend[],
  options: LabOptions = {},
): Promise<Lab> {
  const text = `${options.main ?? ''}
http {
  log_format attempts '$status|$upstream_addr|$upstream_status|$upstream_reason|$request';
  access_log access.log attempts;
  ${body}
}
`
  return new Lab(await start(text, options), backends)
}

export interface LabOptions extends SidecarOptions {
  /** Directives that go before `http`. */
  readonly main?: string
}

/** Resident memory of a process in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
}

/** Who answered how often: `A: 6, B: 6`. */
export function spread(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ')
}

/** Waits until something holds; fails with `what` when it does not in time. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const from = performance.now()
  for (;;) {
    const said = holds()
    if (await said) return
    const waited = performance.now() - from
    if (waited > withinMs) assert.fail(`not in ${withinMs} ms: ${what}`)
    // To ask a program for its state costs it work: not more often than the answer is wanted to be exact.
    await sleep(said instanceof Promise ? Math.min(50, Math.max(5, waited / 10)) : 5)
  }
}
