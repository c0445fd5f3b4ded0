import { parseArgs } from 'node:util'
import { named, whole } from './options.ts'
import { type Scenario, scenarios } from './tail-scenarios.ts'
import { type Subject, subjects } from './tail-subjects.ts'

export interface Options {
  readonly scenarios: readonly Scenario[]
  readonly methods: readonly Subject[]
  /** Length of the measured part, seconds. */
  readonly seconds: number
  readonly runs: number
  /** How many methods run at the same time, beside the best possible. */
  readonly together: number
  readonly json: boolean
}

export const usage = `npm run bench -- tail [--scenario NAME,…] [--methods NAME,…] [--seconds 20] [--runs 3] [--together 3] [--json]
  scenarios: ${scenarios.map(({ name }) => name).join(', ')}
  methods: ${subjects.map(({ name }) => name).join(', ')},
    or a directive such as "least_time header factor=80"
  --together N: so many methods run at the same time, each on peers of its own, and the best possible with them`

/** @throws for what makes no sense, with a text for the user */
export function readOptions(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      scenario: { type: 'string' },
      methods: { type: 'string' },
      seconds: { type: 'string', default: '20' },
      runs: { type: 'string', default: '3' },
      together: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
    },
  })
  return {
    scenarios: named('scenario', scenarios, values.scenario?.split(',')),
    methods: asked(values.methods),
    seconds: whole('seconds', values.seconds, 2, 3600),
    runs: whole('runs', values.runs, 1, 100),
    together: whole('together', values.together, 1, 16),
    json: values.json,
  }
}

/** A directive in full is a method too, so that arguments can be tried. */
function asked(names: string | undefined): readonly Subject[] {
  if (names === undefined) return subjects
  return names.split(',').map((name): Subject => {
    if (!name.includes(' ')) return named('method', subjects, [name])[0]!
    return { name, words: `${name};` }
  })
}
