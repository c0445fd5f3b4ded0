import { parseArgs } from 'node:util'
import { type Scenario, scenarios } from './tail-scenarios.ts'
import { ideal, type Subject, subjects } from './tail-subjects.ts'

export interface Options {
  readonly scenarios: readonly Scenario[]
  readonly subjects: readonly Subject[]
  /** Length of the measured part, seconds. */
  readonly seconds: number
  readonly runs: number
  /** How many methods run at the same time, the best possible among them. */
  readonly together: number
  readonly json: boolean
}

export const usage = `npm run bench -- tail [--scenario NAME,…] [--methods NAME,…] [--seconds 20] [--runs 3] [--together 4] [--json]
  scenarios: ${scenarios.map(({ name }) => name).join(', ')}
  methods: ${subjects.map(({ name }) => name).join(', ')}
  --together N: so many methods, the best possible among them, run at the same time, each on peers of its own`

/** @throws for what makes no sense, with a text for the user */
export function readOptions(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      scenario: { type: 'string' },
      methods: { type: 'string' },
      seconds: { type: 'string', default: '20' },
      runs: { type: 'string', default: '3' },
      together: { type: 'string', default: '4' },
      json: { type: 'boolean', default: false },
    },
  })
  return {
    scenarios: named('scenario', scenarios, values.scenario),
    // Everything is told as a ratio to it.
    subjects: [ideal, ...named('method', subjects, values.methods)],
    seconds: whole('seconds', values.seconds, 2, 3600),
    runs: whole('runs', values.runs, 1, 100),
    together: whole('together', values.together, 1, 16),
    json: values.json,
  }
}

function named<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  names: string | undefined,
): readonly T[] {
  if (names === undefined) return all
  return names.split(',').map((name) => {
    const found = all.find((one) => one.name === name)
    if (!found) throw new Error(`no ${what} "${name}", there are ${all.map((one) => one.name).join(', ')}`)
    return found
  })
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`--${name} is "${text}", not a whole number from ${least} to ${most}`)
  }
  return value
}
