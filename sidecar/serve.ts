import { setTimeout as wait } from 'node:timers/promises'
import { mistakeOf, stackOf } from './mistake.ts'
import { removePid, writePid } from './pid-file.ts'
import { Program } from './program.ts'
import { say } from './say.ts'
import { pidPath, type Source } from './source.ts'
import { errorLog } from './telemetry/error-log.ts'
import { failureText } from './telemetry/system-error.ts'
import { Threads } from './threads.ts'

/** Starts the program and lets it run until a signal ends it. */
export async function serve(source: Source): Promise<void> {
  const program = new Program(source)
  const outcry = (error: unknown) => {
    // Before it serves, a mistake of ours is a failed start. Afterwards nothing that traffic does may end it.
    if (program.phase === 'starting') fail(stackOf(error))
    errorLog.log('alert', stackOf(error))
  }
  process.on('uncaughtException', outcry)
  process.on('unhandledRejection', outcry)
  // A file that may not become larger is a write that fails: without a listener the system ends the program for it.
  process.on('SIGXFSZ', () => {})
  // A reader of our output that goes away is no reason to stop.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})

  // A signal that comes before everything is open ends a start, without ceremony.
  listenToSignals(program)
  try {
    await program.start(({ warnings, notices }) => {
      for (const text of warnings) say(`[warn] ${text}`)
      for (const text of notices) say(`[notice] ${text}`)
    })
    const path = pidPath(program.loaded?.model ?? {}, source.prefix)
    try {
      writePid(path)
      process.on('exit', () => removePid(path))
    } catch (error) {
      say(`[warn] open() "${path}" failed (${failureText(error)}): "-s" will not work`)
    }
  } catch (error) {
    fail(mistakeOf(error))
  }
}

function fail(text: string): never {
  say(`[emerg] ${text}`)
  process.exit(1)
}

/** How long tunnels have for their end when the program stops at once, milliseconds. */
const lastWordsMs = 50

function listenToSignals(program: Program): void {
  let ending = false
  /** Whether it is to end now: the drain, which then has nothing to wait for any more, is not to say how. */
  let cut = false
  const leave = async (code: number) => {
    const { crew, tally } = program
    if (tally.all().tunnels > 0) {
      // Each is to have its end, and its record, even if there is no time for goodbyes.
      crew?.endTunnels()
      await wait(lastWordsMs)
    }
    // What an exit closes is closed in order, and a part of an answer could be taken for all of it.
    crew?.destroy()
    await program.leave()
    process.exit(code)
  }
  const now = (code: number) => {
    cut = true
    void leave(code)
  }
  const drain = (signal: NodeJS.Signals) => {
    if (ending || program.phase === 'starting') return now(1)
    ending = true
    errorLog.log('notice', `${signal}: draining`)
    program.drain().then((alone) => {
      if (cut) return
      errorLog.log('notice', alone ? 'drained, exiting' : 'drain timeout, exiting')
      void leave(0)
    })
  }
  process.on('SIGTERM', drain)
  process.on('SIGQUIT', drain)
  process.on('SIGINT', () => now(ending ? 1 : 0))
  process.on('SIGHUP', () => void program.reloads.ask())
  process.on('SIGUSR1', () => program.crew?.reopen())
  if (process.env['EVENKEEL_TEST_FAULTS'] === '1') obeyFaults(program)
}

/** For tests of what the other threads do when one dies: each SIGUSR2 ends one, by an exception and from outside in turn. */
function obeyFaults(program: Program): void {
  let count = 0
  process.on('SIGUSR2', () => {
    const { crew } = program
    if (!(crew instanceof Threads)) return
    crew.fault(count % crew.size, count % 2 === 0 ? 'throw' : 'terminate')
    count += 1
  })
}
