// A thread that serves clients: it joins the memory that the main thread has made, builds the configuration in it,
// listens on the same addresses as the others, and ends when it is told to.
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { setClock } from '../feedback/clock.ts'
import { Tally } from '../feedback/tally.ts'
import type { SharedZone } from '../feedback/zone.ts'
import { closeLeaving } from './build/groups.ts'
import { JoinedMemory } from './build/joined-memory.ts'
import { join, type Running } from './build/running.ts'
import { listensOf, withPorts } from './listens.ts'
import { mistakeOf, stackOf } from './mistake.ts'
import { type ProgramView, programFacts } from './program-facts.ts'
import { Service } from './service.ts'
import type { News, Order, Report, Setup, WorkerData } from './setup.ts'
import { accessLogPaths } from './source.ts'
import { reopenLogs } from './telemetry/access-log.ts'
import { AttemptFeed } from './telemetry/attempt-feed.ts'
import { logAttempts } from './telemetry/attempt-lines.ts'
import { errorLog } from './telemetry/error-log.ts'
import { lastLinesMs, logFiles } from './telemetry/log-files.ts'
import { joinTurns } from './telemetry/pipe-turns.ts'
import { startTracing, stopTracing } from './telemetry/tracing.ts'
import { TlsStore } from './tls/store.ts'
import { version } from './version.ts'

if (parentPort === null) throw new Error('worker.ts is for threads of the program')
const main = parentPort
// What the main thread gives; see setup.ts.
const data = workerData as WorkerData

setClock(data.clock)
joinTurns(data.turns, data.thread)

/** Zones that have moved since the last look. */
function followMoves(): void {
  for (let note = receiveMessageOnPort(data.moves); note; note = receiveMessageOnPort(data.moves)) {
    // Nothing else is sent there.
    memory.move(note.message as SharedZone)
  }
}

const memory = new JoinedMemory(data.thread, followMoves)
const tally = new Tally(data.threads, data.thread, data.tally)
let setup = data.setup
let running: Running | undefined
let draining = false

/** The program as a location's `api` and `prometheus` show it. What only the main thread knows is left out. */
const view: ProgramView = {
  startedAt: data.startedAt,
  get generation() {
    return setup.generation
  },
  get loadedAt() {
    return setup.loadedAt
  },
  get loaded() {
    return { model: setup.model }
  },
  get running() {
    return running
  },
  get phase() {
    return draining ? 'draining' : 'ready'
  },
  tally,
  token: undefined,
  removed: [],
  threads: { running: data.threads, replaced: 0 },
  fleet: undefined,
  reloads: { last: undefined, ask: async () => ({ ok: false, error: 'ask the admin server' }) },
}

let service: Service | undefined

async function apply(next: Setup): Promise<void> {
  errorLog.configure(next.errorLogs)
  memory.use(next.memory)
  await startTracing({ version, startedAt: data.startedAt })
  const refreshed = running !== undefined && next.generation === setup.generation
  const { prefix, nameServers } = next
  const options = { prefix, version, tls: new TlsStore(next.tls), nameServers }
  const built = join(next.model, next.plans, options, memory, running, refreshed)
  service ??= new Service(built, programFacts(view), {
    threads: data.threads,
    thread: data.thread,
    tally,
  })
  // Addresses with port 0 have their port from the main thread, so that all threads have the same.
  await service.listen(withPorts(listensOf(built), next.ports))
  service.use(built)
  closeLeaving(built.leaving)
  built.replaced?.close()
  setup = next
  running = built
  const logs = [...next.errorLogs.map(({ path }) => path), ...accessLogPaths(next.model, next.prefix)]
  logFiles.keepOnly(['stdout', 'stderr', ...logs])
}

async function report(work: Promise<void>): Promise<void> {
  const answer: Report = await work.then(
    () => ({ kind: 'applied' as const }),
    (error: unknown) => {
      errorLog.log('alert', stackOf(error))
      return { kind: 'failed' as const, error: mistakeOf(error) }
    },
  )
  main.postMessage(answer)
}

logAttempts()
const feed = new AttemptFeed()
let last = report(apply(setup))
main.on('message', (order: Order) => {
  switch (order.kind) {
    case 'apply':
      last = last.then(() => report(apply(order.setup)))
      return
    case 'begin':
      draining = true
      service?.begin()
      return
    case 'watch':
      feed.watch(
        order.on ? (batch) => main.postMessage({ kind: 'attempts', batch } satisfies News) : undefined,
      )
      return
    case 'reopen':
      reopenLogs()
      return
    case 'leave':
      void stopTracing()
        .then(() => logFiles.settle(lastLinesMs))
        .then(() => process.exit())
      return
    case 'fault':
      if (data.faults) throw new Error('asked for by a test')
      return
    default:
      service?.[order.kind]()
  }
})
