import { parseArgs } from 'node:util'
import { soak } from './soak.ts'

/*
 * The program under everything at once, for a long time: `npm run soak -- [--minutes 10] [--threads N] [--seed N]`.
 * Its end says what was not as it has to be; the exit code is 0 when there is nothing.
 */

const usage = `npm run soak -- [--minutes 10] [--threads 1] [--seed N] [--only mix|reloads] [--clients 48]`

function number(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (text === '' || !(value >= least && value <= most)) {
    throw new Error(`--${name} is "${text}", not a number from ${least} to ${most}`)
  }
  return value
}

try {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string' },
      threads: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
      clients: { type: 'string', default: '48' },
      only: { type: 'string', default: 'mix' },
      help: { type: 'boolean', default: false },
    },
  })
  const threads = number('threads', values.threads, 1, 64)
  const seed = number('seed', values.seed, 0, 2 ** 31)
  if (values.help) {
    console.log(usage)
  } else if (values.only === 'reloads') {
    const { reloads } = await import('./reloads.ts')
    const seconds = 60 * number('minutes', values.minutes ?? '1', 0.1, 1440)
    const good = await reloads({ seconds, threads, everyMs: 2000, clients: 8, say: console.log })
    process.exitCode = good ? 0 : 1
  } else if (values.only === 'mix') {
    const seconds = 60 * number('minutes', values.minutes ?? '10', 0.1, 1440)
    console.log(`soak: ${seconds} s, ${threads} ${threads === 1 ? 'thread' : 'threads'}, --seed ${seed}`)
    const verdict = await soak({
      seconds,
      threads,
      seed,
      clients: number('clients', values.clients, 1, 1000),
      restMs: 50,
      windowSeconds: 10,
      reloadEveryMs: 3000,
      quietMs: 20_000,
      evidenceMs: 6000,
      long: true,
      say: console.log,
    })
    const { requests, sessions, peerErrors, reloads, changes, findings } = verdict
    console.log(
      `${requests} requests, ${sessions} sessions, ${peerErrors} failures that peers caused, ${reloads} reloads, ${changes} changes`,
    )
    for (const finding of findings) console.log(finding)
    console.log(findings.length === 0 ? 'good: no error that a peer did not cause' : 'not good')
    process.exitCode = findings.length === 0 ? 0 : 1
  } else throw new Error(`--only is "${values.only}", not mix or reloads`)
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : error}\n${usage}`)
  process.exitCode = 1
}
