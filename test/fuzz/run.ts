// Generated requests and answers, cut and mixed at every byte, through the real program: `npm run fuzz`.
// Ends with 1 at the first finding, told with its seed; `npm run fuzz -- --seed N` runs that case alone.

import { parseArgs } from 'node:util'
import { Campaign } from './campaign.ts'

const usage = 'npm run fuzz -- [--minutes 10] [--seed N] [--count N] [--threads N]'
const values = read()

function read() {
  const number = { type: 'string' } as const
  try {
    const options = { minutes: number, seed: number, count: number, threads: number }
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
    if (values.help !== true) return values
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`fuzz: ${error instanceof Error ? error.message : error}`)
    console.error(`usage: ${usage}`)
    process.exit(2)
  }
}

function number(name: 'minutes' | 'seed' | 'count' | 'threads', least: number): number | undefined {
  const text = values[name]
  if (text === undefined) return undefined
  const value = Number(text)
  if (!Number.isFinite(value) || value < least || (name !== 'minutes' && !Number.isInteger(value))) {
    console.error(`fuzz: --${name} is a number from ${least}`)
    process.exit(2)
  }
  return value
}

const seed = number('seed', 0)
const campaign = new Campaign({
  minutes: number('minutes', 0.01) ?? 10,
  first: seed ?? Math.floor(Math.random() * 1e9),
  count: number('count', 1) ?? (seed === undefined ? Number.POSITIVE_INFINITY : 1),
  threads: number('threads', 1),
  say: (text) => console.log(text),
})
process.exit((await campaign.run()) ? 0 : 1)
