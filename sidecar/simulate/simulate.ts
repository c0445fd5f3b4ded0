import { existsSync } from 'node:fs'
import { ConfigError } from '../config/error.ts'
import { load } from '../config/load.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'
import { type Comparison, compare, type Match } from './compare.ts'
import { type Contender, contenderOf, readContender, usualWords } from './contenders.ts'
import { OptionError, type Options, readOptions, scenarioList, usage } from './options.ts'
import { speedsOf, wantedOf } from './peers.ts'
import { type Scenario, scenarios } from './scenarios.ts'
import { table } from './table.ts'

/** Requests of one simulation; more would not fit into memory. */
const mostRequests = 20_000_000

/**
 * The command `simulate`.
 * @param words what stands after it
 * @param say is told how far it has come, line by line
 * @returns what is to be printed
 * @throws OptionError, ConfigError
 */
export function simulate(words: readonly string[], say: (line: string) => void): string {
  const options = readOptions(words)
  if (options.help) return usage()
  if (options.scenario === 'list') return scenarioList()
  const scenario = scenarios.find(({ name }) => name === options.scenario)
  if (scenario === undefined) {
    throw new OptionError(`unknown scenario "${options.scenario}", it must be one of ${names(scenarios)}`)
  }
  const { name, block, keep } = read(options)
  const own = contenderOf(block)
  const match = matchOf(options, scenario, block, keep, contenders(own, options.methods))
  const began = performance.now()
  const comparison = compare(match, (done, of, words) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    say(`${done + 1} of ${of}, ${seconds} s: ${words}`)
  })
  return options.json ? json(comparison, name, own.words) : table(comparison, name, own.words)
}

/** The group that is meant. */
function read({ config, upstream }: Options): { name: string; block: UpstreamBlock; keep: number } {
  const file = config ?? ['evenkeel.conf', 'evenkeel.yaml'].find((file) => existsSync(file))
  if (file === undefined) {
    throw new OptionError(
      'neither ./evenkeel.conf nor ./evenkeel.yaml is there: name a configuration with -c',
    )
  }
  const http = load(file).model.http ?? {}
  const groups = new Map(Object.entries(http.upstreams ?? {}))
  const all = [...groups.keys()]
  const name = upstream ?? (all.length === 1 ? all[0]! : undefined)
  if (name === undefined) {
    const said = all.length === 0 ? 'has no upstream' : `has several upstreams: ${all.join(', ')}`
    throw new OptionError(`${file} ${said}${all.length === 0 ? '' : '; name one with --upstream'}`)
  }
  const block = groups.get(name)
  if (block === undefined) throw new OptionError(`${file} has no upstream "${name}"`)
  const keep = (block.response_time_factor ?? http.response_time_factor ?? 90) / 100
  return { name, block, keep }
}

function matchOf(
  options: Options,
  scenario: Scenario,
  block: UpstreamBlock,
  keep: number,
  contenders: readonly Contender[],
): Match {
  const wanted = wantedOf(block)
  const speeds = speedsOf(wanted, options.speeds)
  const counted = speeds.filter((speed) => speed > 0).length
  if (counted === 0) throw new OptionError('no server of the upstream is neither "down" nor "backup"')
  const plan = {
    scenario,
    speeds,
    spare: 1,
    workers: options.workers,
    service: options.serviceMs,
    network: options.networkMs,
    load: options.load / 100,
    instances: options.instances ?? scenario.instances,
    duration: 1000 * (options.duration ?? scenario.seconds),
    report: options.report,
    keys: options.keys,
    seed: options.seed,
  }
  const requests = (plan.load * counted * plan.workers * plan.duration) / plan.service
  if (requests > mostRequests) {
    const digits = Math.round(requests).toString()
    throw new OptionError(`these would be ${digits} requests, and more than ${mostRequests} are too many`)
  }
  const { runs, fleet } = options
  return { plan, wanted, keep, contenders, runs, ...(fleet === undefined ? {} : { fleet }) }
}

/** The group's own method first, and none twice. */
function contenders(own: Contender, words: readonly string[] | undefined): Contender[] {
  const found = new Map([[own.words, own]])
  for (const each of words ?? usualWords) {
    try {
      const contender = readContender(each)
      if (!found.has(contender.words)) found.set(contender.words, contender)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      throw new OptionError(`invalid method "${each}" in option "--methods": ${error.text}`)
    }
  }
  return [...found.values()]
}

function json({ stage, runs, central, rows, theory }: Comparison, upstream: string, own: string): string {
  const { plan, window, fault } = stage
  const { scenario, ...rest } = plan
  const methods = rows.map(({ words, fleet, figures, ratios }) => ({
    method: words,
    configured: words === own,
    fleet,
    ...figures,
    ratios,
  }))
  const facts = { upstream, scenario: scenario.name, ...rest, runs, window, fault, central, erlang: theory }
  return `${JSON.stringify({ ...facts, methods }, undefined, 2)}\n`
}

function names(list: readonly Scenario[]): string {
  return list.map(({ name }) => name).join(', ')
}
