import { readNumber } from './numbers.ts'
import { readMessage } from './orca-message.ts'
import type { Attempt } from './outcome.ts'
import type { SignalReason } from './reasons.ts'

/*
 * Load reports: what peers say of themselves in the fields of their answers, as the ORCA standard has it (the message
 * xds.data.orca.v3.OrcaLoadReport). A report that is wrong in one place is not taken at all, as in Envoy; the answer
 * that carried it is none the worse for it.
 */

/** Names of the fields that carry a report; the ones with `x-` and `-json` are older. */
export const loadReportFields: ReadonlySet<string> = new Set([
  'endpoint-load-metrics',
  'endpoint-load-metrics-bin',
  'endpoint-load-metrics-json',
  'x-endpoint-load-metrics',
  'x-endpoint-load-metrics-bin',
  'x-endpoint-load-metrics-json',
])

/** Longest report that is read, characters. */
const maxLength = 8192

/** Numbers by name: `cpu_utilization`, `named_metrics.queue`, `utilization.disk`, `request_cost.db`. */
export type LoadReport = ReadonlyMap<string, number>

/** What was read of an attempt's report. */
export interface ReadReport {
  /** The lists that it was looked for in. */
  readonly headers: readonly string[] | undefined
  readonly trailers: readonly string[] | undefined
  /** A report, or why it is not taken; undefined where there is none. */
  readonly found: LoadReport | SignalReason | undefined
}

/** Names of the numbers that a report has one of. */
const scalars = new Set([
  'cpu_utilization',
  'mem_utilization',
  'application_utilization',
  'rps',
  'rps_fractional',
  'eps',
])
/** Names of those that there may be many of, each with a name of its own; and whether they may be below 0. */
const maps = new Map([
  ['request_cost', true],
  ['utilization', false],
  ['named_metrics', true],
])

/** Ends the reading of a report; never leaves this file. */
class Rejected extends Error {
  readonly reason: SignalReason

  constructor(reason: SignalReason) {
    super(reason)
    this.reason = reason
  }
}

/**
 * The report of an attempt's answer, read once. One in the trailers, which is the later, takes the place of one in
 * the header.
 * @returns the report, or why it is not taken; undefined where there is none
 */
export function loadReport(attempt: Attempt): LoadReport | SignalReason | undefined {
  const { headers, trailers, report: known } = attempt
  if (known !== undefined && known.headers === headers && known.trailers === trailers) return known.found
  const late = known?.trailers === trailers ? undefined : parseReport(trailers)
  const early = known !== undefined && known.headers === headers ? known.found : parseReport(headers)
  const found = late ?? early
  attempt.report = { headers, trailers, found }
  return found
}

/**
 * Reads the report out of a list of fields.
 * @param fields names and values in turn (latin1)
 * @returns the report, or why it is not taken; undefined where there is none
 */
export function parseReport(fields: readonly string[] | undefined): LoadReport | SignalReason | undefined {
  if (fields === undefined) return undefined
  let name = ''
  const lines: string[] = []
  let length = 0
  for (let i = 0; i < fields.length; i += 2) {
    const lower = reportField(fields[i]!)
    if (lower === undefined) continue
    // Two fields could contradict each other.
    if (name !== '' && name !== lower) return 'duplicate'
    name = lower
    lines.push(fields[i + 1]!.trim())
    length += fields[i + 1]!.length
  }
  if (name === '') return undefined
  if (length > maxLength) return 'too_long'
  try {
    return read(name, lines)
  } catch (error) {
    if (error instanceof Rejected) return error.reason
    throw error
  }
}

/** The name in lower case where it is that of a report. */
function reportField(name: string): string | undefined {
  // Hardly any other field has a name as long: the letters of most are not looked at.
  if (name.length < 21) return undefined
  const lower = name.toLowerCase()
  return loadReportFields.has(lower) ? lower : undefined
}

function read(name: string, lines: readonly string[]): LoadReport {
  if (name.endsWith('-bin')) return binary(alone(lines))
  if (name.endsWith('-json')) return json(alone(lines))
  const [, format = 'TEXT', rest = ''] = /^(?:(TEXT|JSON|BIN) +)?(.*)$/is.exec(lines[0]!) ?? []
  switch (format.toUpperCase()) {
    case 'JSON':
      alone(lines)
      return json(rest)
    case 'BIN':
      alone(lines)
      return binary(rest)
    default:
      return text(lines.join(','))
  }
}

/** Only a text can go on in a second line. */
function alone(lines: readonly string[]): string {
  if (lines.length > 1) throw new Rejected('duplicate')
  return lines[0]!
}

/** Takes in one number after the other. */
class Report {
  readonly numbers = new Map<string, number>()

  scalar(name: string, value: number): void {
    this.#add(name, value, false)
  }

  /** @param map of `maps` */
  entry(map: string, name: string, value: number): void {
    if (name === '') throw new Rejected('malformed')
    this.#add(`${map}.${name}`, value, maps.get(map) === true)
  }

  #add(name: string, value: number, negative: boolean): void {
    if (this.numbers.has(name)) throw new Rejected('duplicate')
    if (Number.isNaN(value)) throw new Rejected('not_a_number')
    if (!Number.isFinite(value)) throw new Rejected('infinite')
    if (value < 0 && !negative) throw new Rejected('negative')
    this.numbers.set(name, value)
  }
}

/** `cpu_utilization=0.3, named_metrics.queue=4`; an earlier form has colons for the equals signs. */
function text(line: string): LoadReport {
  const report = new Report()
  for (const written of line.split(',')) {
    // Whoever joins the lines of a field leaves the word of each where it stood.
    const pair = written.trim().replace(/^TEXT +/i, '')
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const cut = equals >= 0 ? equals : pair.indexOf(':')
    const name = pair.slice(0, Math.max(cut, 0)).trim()
    const value = pair.slice(cut + 1).trim()
    if (name === '' || value === '') throw new Rejected('malformed')
    const number = numberOf(value)
    const dot = name.indexOf('.')
    if (scalars.has(name)) report.scalar(name, number)
    else if (dot > 0 && maps.has(name.slice(0, dot))) {
      report.entry(name.slice(0, dot), unescaped(name.slice(dot + 1)), number)
    } else throw new Rejected('unknown_field')
  }
  return report.numbers
}

function numberOf(value: string): number {
  const number = readNumber(value)
  if (typeof number === 'string') throw new Rejected(number)
  return number
}

/** Some write names of their own with `%2C` and the like for what a text gives a meaning to. */
function unescaped(name: string): string {
  if (!name.includes('%')) return name
  try {
    return Buffer.from(decodeURIComponent(name), 'utf8').toString('latin1')
  } catch {
    return name
  }
}

/** Protobuf's form in JSON, its names in either spelling, numbers also as strings. */
function json(source: string): LoadReport {
  const report = new Report()
  const members = fieldsOf(parsed(source))
  let seen = members.length
  for (const [written, value] of members) {
    const name = written.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    // Protobuf writes null for what is not there.
    if (value === null) continue
    if (scalars.has(name)) report.scalar(name, jsonNumber(value))
    else if (maps.has(name)) {
      const entries = fieldsOf(value)
      seen += entries.length
      for (const [own, number] of entries) report.entry(name, own, jsonNumber(number))
    } else throw new Rejected('unknown_field')
  }
  // Of a name that stands twice the parser gives only the last.
  const colons = source.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
  if (colons > seen) throw new Rejected('duplicate')
  return report.numbers
}

function parsed(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch {
    throw new Rejected('malformed')
  }
}

function fieldsOf(value: unknown): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Rejected('malformed')
  return Object.entries(value)
}

function jsonNumber(value: unknown): number {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return numberOf(value)
  throw new Rejected('not_a_number')
}

/** The message itself, in base64 with or without its padding. */
function binary(source: string): LoadReport {
  const plain = source.replace(/=+$/, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(source) || plain.length % 4 === 1) throw new Rejected('malformed')
  const numbers = readMessage(Buffer.from(plain, 'base64'))
  if (numbers === undefined) throw new Rejected('malformed')
  const report = new Report()
  for (const { map, name, value } of numbers) {
    if (map === undefined) report.scalar(name, value)
    else report.entry(map, name, value)
  }
  return report.numbers
}
