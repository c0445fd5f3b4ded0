import { formatTime, timeMs } from '../config/units.ts'
import { scenarios } from './scenarios.ts'
import type { Report } from './stage.ts'

/** What the command line asks of a simulation. Times are as written: seconds or milliseconds as their names say. */
export interface Options {
  readonly config: string | undefined
  readonly upstream: string | undefined
  readonly scenario: string
  /** Percent. */
  readonly load: number
  /** Undefined: as the scenario has it. */
  readonly instances: number | undefined
  readonly seed: number
  readonly runs: number
  /** Undefined: as the scenario has it. */
  readonly duration: number | undefined
  readonly methods: readonly string[] | undefined
  readonly workers: number
  readonly serviceMs: number
  readonly networkMs: number
  readonly speeds: readonly number[] | undefined
  readonly report: Report
  readonly keys: number
  /** How often sidecars tell one another what they see, milliseconds; undefined: never. */
  readonly fleet: number | undefined
  readonly json: boolean
  readonly help: boolean
}

/** Between what and what an interval of the fleet may be, milliseconds. */
const leastInterval = 10
const mostInterval = 60_000

/** A command line that cannot be obeyed. */
export class OptionError extends Error {}

type Values = { -readonly [K in keyof Options]: Options[K] }

interface Kind {
  /** What a value looks like, for the help; undefined for a flag. */
  readonly shape: string | undefined
  /** What holds where no value is written; then one can only stand after `=`. */
  readonly usual?: string
  readonly help: string
  take(values: Values, text: string, name: string): void
}

const table: Readonly<Record<string, Kind>> = {
  '-c': {
    shape: 'FILE',
    help: 'configuration (default: ./evenkeel.conf, then ./evenkeel.yaml)',
    take: (values, text) => {
      values.config = text
    },
  },
  '--upstream': {
    shape: 'NAME',
    help: 'whose peers, weights and method are meant (may be left out where there is one)',
    take: (values, text) => {
      values.upstream = text
    },
  },
  '--scenario': {
    shape: 'NAME',
    help: 'what befalls the group; "list" prints all (default: homogeneous)',
    take: (values, text) => {
      values.scenario = text
    },
  },
  '--load': {
    shape: 'PERCENT',
    help: "of all workers' time that is asked for (default: 70)",
    take: (values, text, name) => {
      values.load = number(name, text, 0.1, 200)
    },
  },
  '--instances': {
    shape: 'N',
    help: 'sidecars, among which requests are dealt out at random (default: 4, or as the scenario says)',
    take: (values, text, name) => {
      values.instances = whole(name, text, 1, 1000)
    },
  },
  '--workers': {
    shape: 'N',
    help: 'requests that a peer works on at once; others wait there in the order of coming (default: 2)',
    take: (values, text, name) => {
      values.workers = whole(name, text, 1, 1000)
    },
  },
  '--service-ms': {
    shape: 'MS',
    help: 'mean time of a worker for a request, exponential (default: 10)',
    take: (values, text, name) => {
      values.serviceMs = number(name, text, 0.001, 3_600_000)
    },
  },
  '--network-ms': {
    shape: 'MS',
    help: 'way from a sidecar to a peer, and the same back (default: 0.25)',
    take: (values, text, name) => {
      values.networkMs = number(name, text, 0, 60_000)
    },
  },
  '--speeds': {
    shape: 'A,B,…',
    help: 'of the peers, by their order, of any scale (default: their weights)',
    take: (values, text, name) => {
      values.speeds = text.split(',').map((part) => number(name, part, 0.001, 1000))
    },
  },
  '--methods': {
    shape: 'A,B,…',
    help: 'what to compare with, each as it is written in an upstream block (default: all)',
    take: (values, text) => {
      values.methods = text.split(',').map((words) => words.trim())
    },
  },
  '--report': {
    shape: 'time|count',
    help: 'what peers say of themselves for "feedback": see below (default: time)',
    take: (values, text, name) => {
      if (text !== 'time' && text !== 'count') {
        throw new OptionError(`invalid value "${text}" of option "${name}", it must be "time" or "count"`)
      }
      values.report = text
    },
  },
  '--keys': {
    shape: 'N',
    help: 'different keys that requests have for hash and ip_hash, each as often (default: 10000)',
    take: (values, text, name) => {
      values.keys = whole(name, text, 1, 16_777_216)
    },
  },
  '--fleet': {
    shape: 'TIME',
    usual: '200ms',
    help: 'sidecars tell one another what they see, so often (default: 200ms): who heeds that is tried without and with',
    take: (values, text, name) => {
      values.fleet = timeMs(text) ?? Number.NaN
      if (values.fleet >= leastInterval && values.fleet <= mostInterval) return
      const [least, most] = [formatTime(leastInterval), formatTime(mostInterval)]
      throw new OptionError(
        `invalid value "${text}" of option "${name}", it must be a time between ${least} and ${most}`,
      )
    },
  },
  '--duration': {
    shape: 'S',
    help: 'how long requests come (default: as the scenario has it); its moments move with that',
    take: (values, text, name) => {
      values.duration = number(name, text, 1, 36_000)
    },
  },
  '--seed': {
    shape: 'N',
    help: 'of the dice: the same seed, the same table (default: 1)',
    take: (values, text, name) => {
      values.seed = whole(name, text, 0, 2 ** 53 - 1)
    },
  },
  '--runs': {
    shape: 'N',
    help: 'seeds to go through, from that one on; medians are shown (default: 1)',
    take: (values, text, name) => {
      values.runs = whole(name, text, 1, 99)
    },
  },
  '--json': {
    shape: undefined,
    help: 'JSON instead of a table',
    take: (values) => {
      values.json = true
    },
  },
  '--help': {
    shape: undefined,
    help: 'this help',
    take: (values) => {
      values.help = true
    },
  },
}

/**
 * Reads the words after `simulate`: `--name value` or `--name=value`; the last of two wins.
 * @throws OptionError
 */
export function readOptions(words: readonly string[]): Options {
  const values: Values = {
    config: undefined,
    upstream: undefined,
    scenario: 'homogeneous',
    load: 70,
    instances: undefined,
    seed: 1,
    runs: 1,
    duration: undefined,
    methods: undefined,
    workers: 2,
    serviceMs: 10,
    networkMs: 0.25,
    speeds: undefined,
    report: 'time',
    keys: 10_000,
    fleet: undefined,
    json: false,
    help: false,
  }
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    const [, name = word, text] = /^(--[^=]+)=(.*)$/s.exec(word) ?? []
    const kind = Object.hasOwn(table, name) ? table[name] : aliases.get(name)
    if (kind === undefined || (kind.shape === undefined && text !== undefined)) {
      throw new OptionError(`invalid option: "${word}"`)
    }
    const value = kind.shape === undefined ? '' : (text ?? kind.usual ?? words[++i])
    if (value === undefined || (kind.shape !== undefined && value === '')) {
      throw new OptionError(`option "${name}" requires a value`)
    }
    kind.take(values, value, name)
  }
  return values
}

const aliases = new Map([
  ['-h', table['--help']!],
  ['-?', table['--help']!],
])

function number(name: string, text: string, least: number, most: number): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw new OptionError(
    `invalid value "${text}" of option "${name}", it must be between ${least} and ${most}`,
  )
}

function whole(name: string, text: string, least: number, most: number): number {
  if (/^\d+$/.test(text)) return number(name, text, least, most)
  throw new OptionError(`invalid value "${text}" of option "${name}", it must be a whole number`)
}

/** The scenarios with a line each. */
export function scenarioList(): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length))
  return scenarios.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`).join('')
}

/** What `simulate --help` prints. */
export function usage(): string {
  const lines = Object.entries(table).map(([name, { shape, usual, help }]) => [
    shape === undefined ? name : usual === undefined ? `${name} ${shape}` : `${name}[=${shape}]`,
    help,
  ])
  const width = Math.max(...lines.map(([left]) => left!.length))
  return `Usage: evenkeel simulate -c FILE --upstream NAME --scenario NAME [options]

Tries the method of a group of the configuration, and others, on the same simulated requests, with the very code that
balances, and sets their response times against the best there could be: one queue for all workers.

Options:
${lines.map(([left, right]) => `  ${left!.padEnd(width)}  ${right}\n`).join('')}
Scenarios:
${scenarioList()}
Requests are Poisson; each "server" line is a peer. Every answer counts, header and last byte come at once, and a 503 goes
to the client. For "feedback" peers report how long they would take for what they have and one request more, in
milliseconds, or how many requests they have; without "inverse" they report 1 over that. With --fleet sidecars tell one
another of successes, failures and what is stuck, as the program does through Redis, with a millisecond for a round trip;
--instances says how many there are. Progress goes to the standard error, the table to the standard output.
`
}
