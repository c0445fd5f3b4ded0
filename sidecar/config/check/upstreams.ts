import { type Method, serverParams } from '../../balance/method.ts'
import { defaultMethod, methods } from '../../balance/methods.ts'
import { maxRingPoints, ringPoints } from '../../balance/ring.ts'
import type { HttpBlock, UpstreamBlock } from '../model.ts'
import { fail, type Place, type Reading } from '../reading.ts'

/** A group's balancing method with its arguments, round robin where the block names none. */
export function methodOf(upstream: UpstreamBlock): {
  readonly name: string
  readonly args: Readonly<Record<string, string | number | boolean>>
} {
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
export function checkUpstreams(http: HttpBlock, reading: Reading): void {
  for (const [name, upstream] of Object.entries(http.upstreams ?? {})) {
    checkParams(upstream, reading)
    checkServers(name, upstream, reading)
    checkRing(name, upstream, reading)
  }
  checkZones(http, reading)
}

function checkServers(name: string, upstream: UpstreamBlock, reading: Reading): void {
  const place = placeOf(reading, upstream)
  const servers = upstream.servers ?? []
  if (upstream.zone) return
  if (servers.length === 0) fail(place, 'no servers are inside upstream')
  if (servers.every((server) => server.backup)) fail(place, `no servers in upstream "${name}"`)
}

/** The whole block counts: a method refuses a parameter wherever its own line stands. */
function checkParams(upstream: UpstreamBlock, reading: Reading): void {
  const { name } = methodOf(upstream)
  const method: Method = methods.find((method) => method.name === name) ?? defaultMethod
  for (const server of upstream.servers ?? []) {
    for (const param of serverParams) {
      if (server[param] === undefined || method.supports.includes(param)) continue
      const place = placeOf(reading, server, param)
      fail(place, `balancing method does not support parameter "${place.token ?? param}"`)
    }
  }
}

function checkRing(name: string, upstream: UpstreamBlock, reading: Reading): void {
  const { name: method, args } = methodOf(upstream)
  if (method !== 'hash' || args['consistent'] !== true) return
  if (ringPoints(upstream.servers ?? []) <= maxRingPoints) return
  fail(placeOf(reading, upstream, method), `upstream "${name}" has too many hash points`)
}

/** Several groups may name one zone; one of them has to say how large it is, where nginx would ask for it. */
function checkZones(http: HttpBlock, reading: Reading): void {
  const sizes = new Map<string, string>()
  for (const { zone } of Object.values(http.upstreams ?? {})) {
    if (zone?.size === undefined) continue
    const before = sizes.get(zone.name)
    if (before !== undefined && before !== zone.size) {
      const text = `the size ${zone.size} of shared memory zone "${zone.name}" conflicts with already declared size ${before}`
      fail(placeOf(reading, zone), text)
    }
    sizes.set(zone.name, zone.size)
  }
  for (const { zone } of Object.values(http.upstreams ?? {})) {
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
