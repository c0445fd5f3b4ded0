import { cpus, loadavg } from 'node:os'
import { redisServer } from '../support/redis.ts'
import { type Cost, measure, stretches } from './fleet-measure.ts'
import { type Full, growthText, head, isStarved, row, tooMuch } from './fleet-report.ts'

/*
 * What the fleet costs Redis, by instances and peers: instances are real ones, with a connection each, and their peers'
 * numbers are simulated. Takes below four minutes, one core for Redis and one for the instances.
 */

const instances = [1, 3, 10, 25, 50]
const peers = [10, 100, 1000]
/** Parts of the peers that have traffic in an interval: all is the most that there can be to tell. */
const parts = [1, 0.1]
const times = { warm: 1000, measured: 4000 }

export async function run(): Promise<void> {
  await using server = await redisServer()
  const began = performance.now()
  const say = (text: string) =>
    process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0)} s: ${text}\n`)
  const version = /redis_version:(\S+)/.exec(String(await server.command('INFO', 'server')))?.[1]
  console.log(
    `Redis ${version}, Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}; every instance tells ` +
      'and hears every 200 ms',
  )
  for (const part of parts) {
    const rows: (Cost | Full)[] = []
    const texts: string[] = []
    for (const count of peers) {
      const costs: Cost[] = []
      for (const some of instances) {
        const cell = { instances: some, peers: count, part }
        const full = tooMuch(cell, costs.at(-1))
        if (full !== undefined) {
          rows.push(full)
          continue
        }
        const cost = await measure(server, cell, times)
        costs.push(cost)
        rows.push(cost)
        say(
          `${some} × ${count}, ${100 * part} %: ${cost.commands.toFixed(0)} commands/s, ` +
            `${(100 * cost.cpu).toFixed(1)} % CPU, ${cost.p99.toFixed(1)} ms at p99, ` +
            `load ${loadavg()[0]!.toFixed(1)}`,
        )
      }
      // A start costs what it costs whatever comes after: fewer than three say little.
      const fitted = costs.filter((cost) => cost.cell.instances >= 3 && !isStarved(cost))
      if (fitted.length > 1) texts.push(growthText(fitted))
    }
    console.log(`\n${100 * part} % of the peers have traffic in an interval\n\n${head}`)
    for (const one of rows) console.log(row(one))
    console.log(`\n${texts.join('\n')}`)
  }
  console.log('\nHow long an exchange keeps the thread of an instance busy, ms, median and most')
  for (const count of peers) {
    const { sending, hearing } = await stretches(server, count, times)
    const text = ([median, most]: readonly [number, number]) => `${median.toFixed(2)}, ${most.toFixed(2)}`
    console.log(`${count} peers: telling ${text(sending)}; hearing ${text(hearing)}`)
  }
  say('done')
}
