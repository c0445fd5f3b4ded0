import { isDeepStrictEqual } from 'node:util'
import { type Method, serverParams } from '../../balance/method.ts'
import { defaultMethod, methods } from '../../balance/methods.ts'
import { maxRingPoints, ringPoints } from '../../balance/ring.ts'
import { fail, type Place } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { UpstreamBlock } from '../upstream-model.ts'
import { checkSplit } from './split.ts'

/** What groups stand in: `http` or `stream`. */
export interface Groups {
  readonly upstreams?: Readonly<Record<string, UpstreamBlock>>
}

/** A method as a group's block has it. */
export interface MethodLine {
  readonly name: string
  readonly args: Readonly<Record<string, string | number | boolean>>
}

/** The method that is tried beside a group's own; undefined where there is none. */
export function shadowOf({ shadow }: UpstreamBlock): MethodLine | undefined {
  const [name, args] = Object.entries(shadow ?? {})[0] ?? []
  return name === undefined || args === undefined ? undefined : { name, args: args === true ? {} : args }
}

/** A group's balancing method with its arguments, round robin where the block names none. */
export function methodOf(upstream: UpstreamBlock): MethodLine {
  for (const { name } of methods) {
    const args = name === defaultMethod.name ? undefined : upstream[name]
    if (args !== undefined) return { name, args: args === true ? {} : args }
  }
  return { name: defaultMethod.name, args: {} }
}

/**
 * Rules of groups that no single line can break.
 * @throws ConfigError
 */
export function checkUpstreams(block: Groups, reading: Reading): void {
  for (const [name, upstream] of Object.entries(block.upstreams ?? {})) {
    checkParams(upstream, reading)
    checkServers(name, upstream, reading)
    checkSticky(name, upstream, reading)
    checkRing(name, upstream, reading)
    checkSplit(name, upstream, reading)
    checkShadow(name, upstream, reading)
  }
  checkZones(block, reading)
}

function checkServers(name: string, upstream: UpstreamBlock, reading: Reading): void {
  const place = placeOf(reading, upstream)
  const servers = upstream.servers ?? []
  if (upstream.zone) {
    // Servers may come over the admin server; as a rule a semicolon is missing, and a line has taken them for its own.
    if (servers.length === 0)
      reading.warn(place, `upstream "${name}" has no servers, nobody is asked until one is added`)
    return
  }
  if (servers.length === 0) fail(place, 'no servers are inside upstream')
  if (servers.every((server) => server.backup)) fail(place, `no servers in upstream "${name}"`)
}

/** What only sessions that are bound to peers have a use for is no mistake without them, and as a rule not what was meant. */
function checkSticky(name: string, upstream: UpstreamBlock, reading: Reading): void {
  if (upstream.sticky !== undefined) return
  for (const key of ['sticky_secret', 'sticky_strict'] as const) {
    if (upstream[key] === undefined || upstream[key] === false) continue
    reading.warn(
      placeOf(reading, upstream, key),
      `"${key}" has no effect without "sticky" in upstream "${name}"`,
    )
  }
  for (const server of upstream.servers ?? []) {
    if (server.drain !== true) continue
    const text = `"drain" without "sticky" in upstream "${name}": the server gets nothing`
    reading.warn(placeOf(reading, server, 'drain'), text)
  }
}

/** The whole block counts: a method refuses a parameter wherever its own line stands. */
function checkParams(upstream: UpstreamBlock, reading: Reading, shadow?: MethodLine): void {
  const { name } = shadow ?? methodOf(upstream)
  const method: Method = methods.find((method) => method.name === name) ?? defaultMethod
  for (const server of upstream.servers ?? []) {
    for (const param of serverParams) {
      if (server[param] === undefined || method.supports.includes(param)) continue
      const place = placeOf(reading, server, param)
      const who = shadow ? `"shadow" ${name}` : 'balancing method'
      fail(place, `${who} does not support parameter "${place.token ?? param}"`)
    }
  }
}

function checkRing(name: string, upstream: UpstreamBlock, reading: Reading, shadow?: MethodLine): void {
  const { name: method, args } = shadow ?? methodOf(upstream)
  if (method !== 'hash' || args['consistent'] !== true) return
  if (ringPoints(upstream.servers ?? []) <= maxRingPoints) return
  fail(placeOf(reading, upstream, shadow ? 'shadow' : method), `upstream "${name}" has too many hash points`)
}

/** What could not be switched to is not tried either. */
function checkShadow(name: string, upstream: UpstreamBlock, reading: Reading): void {
  const shadow = shadowOf(upstream)
  if (shadow === undefined) return
  checkParams(upstream, reading, shadow)
  checkRing(name, upstream, reading, shadow)
  const own = methodOf(upstream)
  if (own.name === shadow.name && isDeepStrictEqual(own.args, shadow.args)) {
    reading.warn(placeOf(reading, upstream, 'shadow'), '"shadow" is the balancing method that the group has')
  }
}

/** Several groups may name one zone; one of them has to say how large it is, where nginx would ask for it. */
function checkZones(block: Groups, reading: Reading): void {
  const sizes = new Map<string, string>()
  for (const { zone } of Object.values(block.upstreams ?? {})) {
    if (zone?.size === undefined) continue
    const before = sizes.get(zone.name)
    if (before !== undefined && before !== zone.size) {
      const text = `the size ${zone.size} of shared memory zone "${zone.name}" conflicts with already declared size ${before}`
      fail(placeOf(reading, zone), text)
    }
    sizes.set(zone.name, zone.size)
  }
  for (const { zone } of Object.values(block.upstreams ?? {})) {
    if (zone === undefined || sizes.has(zone.name)) continue
    const place = placeOf(reading, zone)
    // Memory needs no size here, so the native syntax may leave it out.
    if (place.syntax === 'nginx') fail(place, `zero size shared memory zone "${zone.name}"`)
  }
}

/** Every part of the model was read from somewhere. */
function placeOf(reading: Reading, part: object, key = ''): Place {
  return reading.at(part, key) ?? { file: '', line: 0, syntax: 'yaml' }
}
