import { isIP } from 'node:net'
import { streamPrefix } from '../../feedback/upstream.ts'
import { serverAddress } from '../config/address.ts'
import { fromParts, nothingFound } from '../config/args.ts'
import { checkUpstreams } from '../config/check/upstreams.ts'
import type { Part } from '../config/directive.ts'
import { findDirective } from '../config/directives.ts'
import { ConfigError } from '../config/error.ts'
import { Fault } from '../config/fault.ts'
import { Reading } from '../config/reading.ts'
import type { ServerLine, UpstreamBlock } from '../config/upstream-model.ts'
import { linesOf, type Made, type ValueKind, type Written } from './changes.ts'

/** A group with all of its block. */
export interface WrittenGroup extends Written {
  readonly block: UpstreamBlock
}

/** What is wrong with a wish, in the words that the same mistake in the file has. */
export class Misfit extends Error {}

/** Parameters by which a line of the file follows DNS. */
const following = ['resolve', 'service']
const flags = ['backup', 'down', 'drain']

/**
 * The `server` line that a request describes: `server` is its text, and the other members are its parameters.
 * @param group its name, which tells groups of `stream` from others
 * @throws Misfit
 */
export function readLine(group: string, members: Readonly<Record<string, unknown>>): ServerLine {
  const parts: Record<string, Part> = Object.create(null)
  if (members['server'] === undefined && members['address'] === undefined) {
    throw new Misfit('"server" is missing: it is the address of the server to add')
  }
  for (const [name, value] of Object.entries(members)) {
    if (following.includes(name)) {
      throw new Misfit(`parameter "${name}" is for the file: a server that is added has the addresses of now`)
    }
    if (value === false && flags.includes(name)) continue
    const known = typeof value === 'string' || typeof value === 'number' || value === true
    if (name === 'address') throw new Misfit('invalid parameter "address"; the address is given as "server"')
    if (!known) throw new Misfit(`invalid parameter "${name}=${JSON.stringify(value)}"`)
    parts[name === 'server' ? 'address' : name] = value === true ? true : String(value)
  }
  try {
    return read(group, parts, new Reading({}))
  } catch (error) {
    throw new Misfit(wrongWith(error))
  }
}

/** Whether the text of a line is an address, and no name that stands for some. */
export function isLiteral(text: string): boolean {
  const address = serverAddress(text)
  return address.kind === 'unix' || isIP(address.host) > 0
}

/** What is wrong with a group that is changed so, in the words that the file's mistakes have; undefined: nothing. */
export function misfit(group: WrittenGroup, made: readonly Made[]): string | undefined {
  try {
    const reading = new Reading({})
    const servers = linesOf(group, made).flatMap((line) => revised(group.name, line, made, reading))
    checkUpstreams({ upstreams: { [group.name]: { ...group.block, servers } } }, reading)
    return undefined
  } catch (error) {
    return wrongWith(error)
  }
}

function wrongWith(error: unknown): string {
  if (error instanceof ConfigError) return error.text
  if (error instanceof Fault) return error.message
  throw error
}

/** What is left of a line: itself, as its peers are changed, once for each way in which they are. */
function revised(group: string, line: ServerLine, made: readonly Made[], reading: Reading): ServerLine[] {
  const about = made.filter(({ kind, lines }) => kind !== 'added' && lines.includes(line.address))
  const literal = isLiteral(line.address)
  if (about.some(({ kind, whole }) => kind === 'removed' && (whole || literal))) return []
  const own = about.filter(({ whole }) => whole || literal)
  const sets = [own]
  if (!literal) {
    const single = Map.groupBy(
      about.filter(({ whole, kind }) => !whole && kind !== 'removed'),
      ({ target }) => target,
    )
    for (const set of single.values()) sets.push([...own, ...set])
  }
  const added = made.some((change) => change.line === line)
  return sets.map((set) => (set.length === 0 && !added ? line : read(group, partsOf(line, set), reading)))
}

function partsOf(line: ServerLine, changes: readonly Made[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  for (const [name, value] of Object.entries(line)) parts[name] = value === true ? true : String(value)
  for (const { kind, value } of changes) {
    if (kind !== 'state') parts[kind satisfies string as ValueKind] = String(value)
    else {
      delete parts['down']
      delete parts['drain']
      if (value !== 'up') parts[String(value)] = true
    }
  }
  return parts
}

/** Reads a line as the file's are read, and keeps how its parameters would have been written. */
function read(group: string, parts: Record<string, Part>, reading: Reading): ServerLine {
  const directive = findDirective('server', group.startsWith(streamPrefix) ? 'stream upstream' : 'upstream')
  if (directive === undefined) throw new Error('"server" is no directive')
  const found = nothingFound()
  // What this very directive's schema has let through.
  const line = fromParts(directive, parts, found) as unknown as ServerLine
  const place = { file: '', line: 0, syntax: 'yaml' } as const
  for (const [name, token] of found.tokens) reading.mark(line, name, { ...place, token })
  return line
}
