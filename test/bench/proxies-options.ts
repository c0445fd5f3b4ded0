import { parseArgs } from 'node:util'
import { named, whole } from './options.ts'
import { type Scenario, scenarios } from './proxies-scenarios.ts'
import { type Subject, subjects } from './proxies-subjects.ts'

export interface Options {
  readonly scenarios: readonly Scenario[]
  readonly subjects: readonly Subject[]
  /** How often each is measured in each scenario. */
  readonly rounds: number
  /** Length of a turn, milliseconds. */
  readonly turnMs: number
  /** How long those that compile as they run are kept busy before they are measured, milliseconds. */
  readonly warmMs: number
  /** Whether what a choice costs is measured too. */
  readonly picks: boolean
  /** Whether the tables in README are written anew. */
  readonly readme: boolean
}

export const usage = `npm run bench [-- proxies] [--scenarios NAME,…] [--subjects NAME,…] [--rounds 5] [--turn 800] [--warm 5000] [--readme]
  scenarios: ${scenarios.map(({ name }) => name).join(', ')}, picks
  subjects: ${subjects.map(({ name }) => name).join(', ')}
  --turn, --warm: milliseconds of a measurement, and of work to warm up; --readme: write the tables of README.md anew`

/** @throws for what makes no sense, with a text for the user */
export function readOptions(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      scenarios: { type: 'string' },
      subjects: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      turn: { type: 'string', default: '800' },
      warm: { type: 'string', default: '5000' },
      readme: { type: 'boolean', default: false },
    },
  })
  const asked = values.scenarios?.split(',')
  if (values.readme && (asked !== undefined || values.subjects !== undefined)) {
    throw new Error('--readme needs all scenarios and all subjects')
  }
  return {
    scenarios: named(
      'scenario',
      scenarios,
      asked?.filter((name) => name !== 'picks'),
    ),
    subjects: named('subject', subjects, values.subjects?.split(',')),
    rounds: whole('rounds', values.rounds, 1, 1000),
    turnMs: whole('turn', values.turn, 50, 60_000),
    warmMs: whole('warm', values.warm, 100, 600_000),
    picks: asked === undefined ? values.subjects === undefined : asked.includes('picks'),
    readme: values.readme,
  }
}
