import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../support/dice.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { alarmsIn } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { AccessLogReader } from './access-log.ts'
import { BytePeers, refusingPort } from './byte-peers.ts'
import { changeable, changed, changeSomething } from './changes.ts'
import {
  comingAndGoing,
  configuration,
  moody,
  mortal,
  readTimeoutMs,
  steady,
  variants,
  visiting,
} from './configuration.ts'
import { type Mood, moods, now } from './deed.ts'
import { busy, Counters, inFlight, metrics, opened, usage } from './gauges.ts'
import type { LogRecord } from './judge.ts'
import { Ledger } from './ledger.ts'
import { wander } from './mix.ts'
import { moveName } from './names.ts'
import { Peers } from './peers.ts'
import { type SessionLine, Sessions } from './sessions.ts'
import { type Bound, growth } from './slope.ts'
import { type Town, Visitor } from './visitor.ts'
import { type Window, windowLine, windowTitle } from './window.ts'

export interface SoakOptions {
  readonly seconds: number
  readonly threads: number
  readonly seed: number
  readonly clients: number
  /** Between two things that a client does, milliseconds on average. */
  readonly restMs: number
  /** Length of a window: each has a line. Seconds. */
  readonly windowSeconds: number
  readonly reloadEveryMs: number
  /** How long after the end of the load descriptors may take to be what they were, milliseconds. */
  readonly quietMs: number
  /** How long evidence for what cannot be explained may take to come, milliseconds. */
  readonly evidenceMs: number
  /** Whether clients do what takes them seconds, too. */
  readonly long: boolean
  /** Plants an error that only the harness can notice: one answer is cut off, and its peer says that it gave it. */
  readonly lie?: boolean
  readonly say: (text: string) => void
}

/** What the run found. It is good when there is no finding. */
export interface Verdict {
  readonly requests: number
  /** Of `stream`. */
  readonly sessions: number
  readonly peerErrors: number
  readonly reloads: number
  /** Changes of groups that were asked for while it ran. */
  readonly changes: number
  readonly findings: readonly string[]
  readonly windows: readonly Window[]
}

/** What may be grown by in the second half: what is in progress at two moments differs by some downloads. */
const heapBound: Bound = { bytes: 3 * 2 ** 20, part: 0.05 }
/** Pages that the allocator keeps come and go, and say less. */
const residentBound: Bound = { bytes: 32 * 2 ** 20, part: 0.1 }

/** Before, the program is still compiling what it runs most. */
const fewestWindows = 12

/** Runs the program with scripted peers and clients of every kind, and judges all that comes of it. */
export async function soak(options: SoakOptions): Promise<Verdict> {
  const dice = seeded(options.seed)
  // The ledger needs names of peers, and the peers tell the ledger.
  let heard: Ledger | undefined
  const peers = new Peers((deed) => heard?.deed(deed))
  const names = new Map<string, string>()
  await using dns = await dnsServer()
  await using bytes = await new BytePeers().launch(3)
  const refusing = `127.0.0.1:${await refusingPort()}`
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-soak-'))
  try {
    await Promise.all([
      peers.launch('steady', [...steady, ...visiting]),
      peers.launch('moody', moody),
      peers.launch('mortal', mortal),
    ])
    for (const [name, address] of peers.addresses) names.set(address, name)
    const witness = { outages: peers.outages, nameOf: (one: string) => names.get(one), readTimeoutMs }
    const ledger = new Ledger(witness, options.evidenceMs)
    heard = ledger
    const address = (name: string) => peers.addresses.get(name)!
    const around = { address, dns: dns.address, bytes: bytes.addresses, refusing }
    const text = (variant: number) => configuration(around, options.threads, variant)
    await moveName(dns, address, () => 0.5)
    await using sidecar = await start(text(0), { env: watched(options, folder) })
    const run = new Run(options, sidecar, folder, { peers, dns, bytes }, ledger, text, dice)
    return await run.run()
  } finally {
    await peers.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function watched({ windowSeconds }: SoakOptions, folder: string): Record<string, string> {
  const watch = new URL('./heap-watch.ts', import.meta.url).pathname
  return {
    NODE_OPTIONS: `--expose-gc --import=${watch}`,
    SOAK_HEAP_FOLDER: folder,
    SOAK_HEAP_EVERY: String(Math.min(5000, windowSeconds * 250)),
  }
}

/** Whom the program has to do with. */
interface World {
  readonly peers: Peers
  readonly dns: DnsServer
  readonly bytes: BytePeers
}

class Run {
  readonly #options: SoakOptions
  readonly #sidecar: Sidecar
  readonly #folder: string
  readonly #peers: Peers
  readonly #dns: DnsServer
  readonly #sessions: Sessions
  readonly #ledger: Ledger
  readonly #text: (variant: number) => string
  readonly #dice: () => number
  readonly #log: AccessLogReader<LogRecord>
  readonly #sessionLog: AccessLogReader<SessionLine>
  readonly #counters = new Counters()
  readonly #windows: Window[] = []
  #over = false
  #reloads = 0
  #changes = 0
  #scrapes = 0

  constructor(
    options: SoakOptions,
    sidecar: Sidecar,
    folder: string,
    { peers, dns, bytes }: World,
    ledger: Ledger,
    text: (variant: number) => string,
    dice: () => number,
  ) {
    this.#options = options
    this.#sidecar = sidecar
    this.#folder = folder
    this.#peers = peers
    this.#dns = dns
    this.#ledger = ledger
    this.#text = text
    this.#dice = dice
    const { PORT2 = 0, PORT3 = 0, PORT4 = 0, PORT5 = 0 } = sidecar.ports
    const doors = { plain: PORT2, half: PORT3, proxied: PORT4, udp: PORT5 }
    this.#sessions = new Sessions(bytes, doors, (text) => ledger.fail(text))
    this.#log = new AccessLogReader(join(sidecar.folder, 'access.log'), (record) => ledger.record(record))
    this.#sessionLog = new AccessLogReader(join(sidecar.folder, 'sessions.log'), (line) =>
      this.#sessions.record(line),
    )
  }

  async run(): Promise<Verdict> {
    const { seconds, clients, restMs, long, say } = this.#options
    const ledger = this.#ledger
    // The first scrape and the first line of the log open what stays open.
    await metrics(this.#sidecar)
    await (await fetch(`${this.#sidecar.url}/own/`)).text()
    await this.#sessions.one(() => 0.1)
    await sleep(200)
    const before = opened(this.#sidecar)
    const town = { port: this.#sidecar.port, ledger, peers: this.#peers }
    const begun = now()
    const over = () => this.#over
    say(windowTitle)
    const clientsDone = Promise.all(
      Array.from({ length: clients }, (_, i) =>
        wander(town, seeded(this.#options.seed * 1000 + i), over, { restMs, long }),
      ),
    )
    const sessionsDone = Promise.all(
      Array.from({ length: Math.ceil(clients / 6) }, (_, i) =>
        this.#meet(seeded(this.#options.seed * 1000 + 500 + i)),
      ),
    )
    const duties = Promise.all([
      this.#trouble(),
      this.#every(700, () => moveName(this.#dns, this.#address, this.#dice)),
      this.#every(150, () => this.#change()),
      this.#every(this.#options.reloadEveryMs, () => this.#reload()),
      this.#every(7000, () => this.#reopen()),
      this.#every(1500, () => this.#scrape()),
      this.#every(250, () => this.#look()),
      this.#watch(begun),
    ])
    if (this.#options.lie) await this.#lie(town)
    await this.#rest(seconds * 1000)
    this.#over = true
    await Promise.all([clientsDone, sessionsDone, duties])
    const findings = await this.#quiet(before)
    return {
      requests: ledger.judged,
      sessions: this.#sessions.judged,
      changes: this.#changes,
      peerErrors: ledger.peerErrors,
      reloads: this.#reloads,
      windows: this.#windows,
      findings,
    }
  }

  /** Has a peer answer badly and say otherwise, and asks what it answers to. */
  async #lie(town: Town): Promise<void> {
    this.#peers.order('a', { kind: 'lie' })
    await sleep(100)
    const visitor = new Visitor(town)
    await visitor.ask({ flow: { name: 'planted', retried: true }, place: '/calm/' })
    visitor.close()
  }

  /** Waits, no longer than the load lasts. */
  async #rest(ms: number): Promise<void> {
    for (const end = now() + ms; !this.#over && now() < end; )
      await sleep(Math.max(1, Math.min(100, end - now())))
  }

  async #every(ms: number, work: () => Promise<void> | void): Promise<void> {
    while (!this.#over) {
      await this.#rest(ms)
      if (this.#over) return
      try {
        await work()
      } catch (error) {
        this.#ledger.fail(String(error))
        if (!this.#sidecar.running) this.#over = true
      }
    }
  }

  readonly #address = (name: string): string => this.#peers.addresses.get(name)!

  /** A client of `stream` that has one session after the other. */
  async #meet(dice: () => number): Promise<void> {
    while (!this.#over) {
      await this.#sessions.one(dice).catch((error) => this.#ledger.fail(`a session: ${error}`))
      await sleep(dice() * 2 * this.#options.restMs)
    }
  }

  /** Changes a peer of a group while it runs. */
  async #change(): Promise<void> {
    this.#changes += 1
    const wrong = await changeSomething(this.#sidecar, this.#address, this.#dice)
    if (wrong !== undefined) this.#ledger.fail(wrong)
  }

  #look(last = false): void {
    this.#log.read()
    this.#sessionLog.read()
    this.#ledger.settle(last)
    this.#sessions.settle(last)
    const { outages } = this.#peers
    for (const spans of Object.values(outages)) spans.forget(now() - 120_000)
  }

  /** Peers change their moods, shut their ports, crash and stand still. */
  async #trouble(): Promise<void> {
    const dice = this.#dice
    const moodyOnes = moody.map((name) =>
      this.#every(1000 + dice() * 1000, async () => {
        if (dice() < 0.15) {
          this.#peers.order(name, { kind: 'shut', peer: name })
          await this.#rest(500 + dice() * 1500)
          this.#peers.order(name, { kind: 'open', peer: name })
          return
        }
        // Well half of the time, so that it gets requests again.
        const mood: Mood = dice() < 0.4 ? 'well' : moods[Math.floor(dice() * moods.length)]!
        this.#peers.setMood(name, mood)
      }),
    )
    const mortalOnes = this.#every(6000, () =>
      dice() < 0.5
        ? this.#peers.crash('mortal', 500 + dice() * 1000)
        : this.#peers.halt('mortal', 500 + dice() * 2000),
    )
    await Promise.all([...moodyOnes, mortalOnes])
  }

  async #reload(): Promise<void> {
    this.#reloads += 1
    await this.#sidecar.rewrite(this.#text(this.#reloads % variants))
    this.#sidecar.signal('SIGHUP')
  }

  async #reopen(): Promise<void> {
    this.#log.rotate()
    this.#sessionLog.rotate()
    this.#sidecar.signal('SIGUSR1')
  }

  async #scrape(): Promise<void> {
    this.#scrapes += 1
    await this.#compare()
    if (this.#scrapes % 2 === 0) await this.#sidecar.json('/status/')
    if (this.#scrapes % 5 === 0) await (await fetch(`${this.#sidecar.admin}/explain/lt`)).text()
  }

  /** Counters of what is in every configuration never go back. */
  async #compare(): Promise<void> {
    const values = await metrics(this.#sidecar)
    for (const name of comingAndGoing) {
      const label = `peer="${this.#peers.addresses.get(name)}"`
      for (const series of values.keys()) if (series.includes(label)) values.delete(series)
    }
    // Nor are peers that were taken away meanwhile what they were.
    for (const series of values.keys()) if (this.#mayBegin(series)) values.delete(series)
    for (const series of this.#counters.next(values)) this.#ledger.fail(`a counter went back: ${series}`)
  }

  /** Whether it is of a peer that may have been taken away and have come back. */
  #mayBegin(series: string): boolean {
    if (!series.includes('peer="')) return false
    if (series.includes('upstream="followed"')) return true
    if (series.includes('upstream="stream/')) return true
    return (
      changed.some((group) => series.includes(`upstream="${group}"`)) &&
      changeable.some((name) => series.includes(`peer="${this.#address(name)}"`))
    )
  }

  /** One line a window. */
  async #watch(begun: number): Promise<void> {
    const ledger = this.#ledger
    let [judged, byPeers, errors] = [0, 0, 0]
    while (!this.#over) {
      let heap = Number.POSITIVE_INFINITY
      let [external, resident, delayMs] = [0, Number.POSITIVE_INFINITY, 0]
      const end = now() + this.#options.windowSeconds * 1000
      let last = await usage(this.#sidecar, this.#folder)
      while (now() < end && !this.#over) {
        await this.#rest(Math.min(1000, this.#options.windowSeconds * 200))
        if (!this.#sidecar.running) {
          ledger.fail(`the program ended:\n${this.#sidecar.stderr}`)
          this.#over = true
          return
        }
        last = await usage(this.#sidecar, this.#folder)
        heap = Math.min(heap, last.heap ?? heap)
        external = last.external
        resident = Math.min(resident, last.resident)
        delayMs = Math.max(delayMs, last.delayMs)
      }
      const window: Window = {
        seconds: (now() - begun) / 1000,
        requests: ledger.judged - judged,
        errors: ledger.errors - errors,
        byPeers: ledger.peerErrors - byPeers,
        heap,
        external,
        resident,
        descriptors: last.descriptors,
        handles: last.handles,
        inFlight: inFlight(await metrics(this.#sidecar)),
        delayMs,
      }
      for (const text of ledger.told.splice(0)) this.#tell(text)
      ;[judged, byPeers, errors] = [ledger.judged, ledger.peerErrors, ledger.errors]
      this.#windows.push(window)
      this.#options.say(windowLine(window))
    }
  }

  readonly #told: string[] = []

  #tell(text: string): void {
    this.#told.push(text)
    this.#options.say(`  ! ${text}`)
  }

  /** Waits until all is quiet, and says what is not as it has to be. */
  async #quiet(before: readonly string[]): Promise<string[]> {
    const findings: string[] = []
    const sidecar = this.#sidecar
    const ledger = this.#ledger
    if (sidecar.running) {
      const end = now() + this.#options.quietMs
      let left: string[] = []
      let more = 0
      do {
        await sleep(100)
        this.#look()
        left = busy(await metrics(sidecar))
        more = opened(sidecar).length - before.length
      } while (now() < end && (left.length > 0 || more > 0 || ledger.open + this.#sessions.open > 0))
      if (left.length > 0) findings.push(`still in progress: ${left.join(', ')}`)
      if (more > 0) {
        const rest = opened(sidecar)
        for (const one of before) if (rest.includes(one)) rest.splice(rest.indexOf(one), 1)
        findings.push(`${more} more descriptors than before the load, of these: ${rest.join(', ')}`)
      }
      await this.#compare()
      findings.push(...(await this.#zones()))
      sidecar.signal('SIGTERM')
      const { code } = await sidecar.exited
      if (code !== 0) findings.push(`it ended with ${code}`)
    } else findings.push('the program did not live to the end')
    this.#look(true)
    this.#log.close()
    this.#sessionLog.close()
    for (const text of ledger.told.splice(0)) this.#tell(text)
    if (ledger.errors > 0) findings.push(`${ledger.errors} errors that no peer caused`)
    findings.push(...this.#told.slice(0, 10).map((text) => `  ${text}`))
    if (ledger.unnamed > ledger.torn + 1) {
      findings.push(
        `${ledger.unnamed} records of no request, and ${ledger.torn + 1} heads that were broken off`,
      )
    }
    const alarms = alarmsIn(sidecar.stderr)
    if (alarms.length > 0) findings.push(`alarms: ${alarms.slice(0, 5).join('; ')}`)
    return [...findings, ...this.#memory()]
  }

  /** The zone of the listener has nothing in progress, and has counted what clients have asked. */
  async #zones(): Promise<string[]> {
    const zone = await this.#sidecar.json<{ total: number; processing: number }>(
      '/status/http/server_zones/front/requests/',
    )
    const found: string[] = []
    if (zone.processing !== 0) found.push(`the zone has ${zone.processing} requests in progress`)
    // Heads that were broken off count where they are in the log.
    const asked = this.#ledger.judged + this.#ledger.unnamed
    if (zone.total !== asked)
      found.push(
        `the zone has counted ${zone.total} requests, clients made ${asked} (${this.#ledger.unnamed} of them unnamed, ${this.#ledger.torn} heads torn)`,
      )
    type Session = Record<string, { readonly connections: { total: number; processing: number } }>
    const zones = await this.#sidecar.json<Session>('/status/stream/server_zones/')
    const had = Object.values(zones).reduce((sum, { connections }) => sum + connections.total, 0)
    if (Object.values(zones).some(({ connections }) => connections.processing !== 0))
      found.push('a zone has sessions in progress')
    if (had !== this.#sessions.begun)
      found.push(`the zones have counted ${had} sessions, clients had ${this.#sessions.begun}`)
    return found
  }

  /** Whether memory was flat in the second half: the least of each window, by least squares. */
  #memory(): string[] {
    if (this.#windows.length < fewestWindows) {
      this.#options.say('too short to judge memory')
      return []
    }
    const half = this.#windows.slice(Math.floor(this.#windows.length / 2))
    const found: string[] = []
    for (const [what, bound] of [
      ['heap', heapBound],
      ['resident', residentBound],
    ] as const) {
      const points = half
        .map((window) => [window.seconds, window[what]] as const)
        .filter(([, y]) => Number.isFinite(y))
      const judged = growth(points, bound)
      if (!judged) continue
      const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`
      const text = `${what} has grown by ${mib(judged.grown)} in the second half (at most ${mib(judged.allowed)} counts as flat)`
      this.#options.say(text)
      if (!judged.flat) found.push(text)
    }
    return found
  }
}
