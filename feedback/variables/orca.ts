import type { Call } from '../call.ts'
import { loadReport } from '../orca.ts'

/** Variables that tell what the load report of the last attempt says. Empty where there is none, or it was not taken. */

type Read = (call: Call) => string

/** The first of these numbers that the report has. */
function number(...names: readonly string[]): Read {
  return (call) => {
    const report = reportOf(call)
    for (const name of names) {
      const value = report?.get(name)
      if (value !== undefined) return `${value}`
    }
    return ''
  }
}

/**
 * Numbers with a name of their own. A variable's name has no room for other characters than letters, digits and the
 * underscore: it stands for all of them, and letter case does not matter.
 */
function entry(map: string): (rest: string) => Read {
  const start = `${map}.`
  return (rest) => (call) => {
    for (const [name, value] of reportOf(call) ?? []) {
      if (name.startsWith(start) && same(name.slice(start.length), rest)) return `${value}`
    }
    return ''
  }
}

function reportOf(call: Call) {
  const attempt = call.attempts.at(-1)
  const report = attempt && loadReport(attempt)
  return typeof report === 'string' ? undefined : report
}

function same(name: string, variable: string): boolean {
  return name.length === variable.length && name.toLowerCase().replace(/[^a-z0-9]/g, '_') === variable
}

export const orcaVariables: ReadonlyMap<string, Read> = new Map([
  ['orca_cpu_utilization', number('cpu_utilization')],
  ['orca_mem_utilization', number('mem_utilization')],
  ['orca_application_utilization', number('application_utilization')],
  // `rps` is what it was called while it could only be whole.
  ['orca_rps', number('rps_fractional', 'rps')],
  ['orca_eps', number('eps')],
])

/** By prefix, as in prefixed.ts. */
export const orcaPrefixed: ReadonlyMap<string, (rest: string) => Read> = new Map([
  ['orca_named_', entry('named_metrics')],
  ['orca_utilization_', entry('utilization')],
  ['orca_request_cost_', entry('request_cost')],
])
