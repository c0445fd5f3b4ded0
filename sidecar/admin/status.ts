import { type Answer, answer, uncached } from './answer.ts'
import type { Facts } from './facts.ts'
import { fleetEntries } from './status-fleet.ts'
import { groups } from './status-groups.ts'
import { statusJson } from './status-json.ts'
import { resolvers } from './status-resolvers.ts'
import { clientZones, sessionZones } from './status-zones.ts'
import { type Branch, type Entry, empty, find, type Node } from './tree.ts'

/**
 * The place in the API's tree that a request on a data port asks for: the argument of `api` and what of the path
 * lies below the location.
 * @param prefix the argument of `api`, `/status/`
 * @param location the location's path; undefined for one by regular expression, where the argument says it all
 * @param uri the request's decoded path, as latin1 text of its UTF-8 bytes
 */
export function apiPath(prefix: string, location: string | undefined, uri: string): string {
  if (location === undefined) return prefix
  // A rewrite may have led to a path outside the location: then all of it counts, as in Angie.
  const below = uri.startsWith(location) ? uri.slice(location.length) : uri
  const rest = Buffer.from(below.replace(/^\//, ''), 'latin1').toString()
  return rest === '' ? prefix : `${prefix.replace(/\/$/, '')}/${rest}`
}

/**
 * Answers a request for a part of the status tree, on the admin server as on a data port (`api /status/;`).
 * @param path the place in the API's tree, decoded: `/status/http/upstreams/`, with or without the last slash
 * @param query the query string without its question mark: `pretty=off` and `date=epoch` mean something
 * @param address local address of the connection, without the port, which the tree shows
 */
export function statusResponse(
  facts: Facts,
  path: string,
  query: string,
  method: string,
  address: string,
): Answer {
  const args = new URLSearchParams(query)
  const format = { pretty: args.get('pretty') !== 'off', epoch: args.get('date') === 'epoch' }
  const entity = `/${path.replace(/^\//, '')}`
  const fail = (status: 404 | 405, error: string, description: string): Answer => {
    const body: Branch = () => [
      ['error', error],
      ['description', description],
    ]
    const extra = status === 405 ? { allow: 'GET, HEAD' } : {}
    return answer(method, status, 'application/json', statusJson(body, format), extra)
  }
  if (method !== 'GET' && method !== 'HEAD') {
    const text = `The ${method} method is not allowed for the requested API entity "${entity}".`
    return fail(405, 'MethodNotAllowed', text)
  }
  const node = find(() => [['status', statusTree(facts, address)]], path)
  if (node === undefined) return fail(404, 'PathNotFound', `Requested API entity "${entity}" doesn't exist.`)
  return answer(method, 200, 'application/json', statusJson(node, format), uncached)
}

/**
 * Everything below `/status`, in the shape and order of Angie's API, so that tools made for it work. What evenkeel
 * knows beyond it stands under keys named `evenkeel`, and what instances share under keys named `fleet`.
 * @param address what the tree shows as the server's address
 */
export function statusTree(facts: Facts, address: string): Branch {
  return function* () {
    yield ['angie', () => program(facts, address)]
    yield [
      'connections',
      () => Object.entries(pick(facts.connections(), ['accepted', 'dropped', 'active', 'idle'])),
    ]
    yield ['slabs', empty]
    yield ['http', () => http(facts)]
    yield ['resolvers', () => resolvers(facts.resolvers())]
    yield ['stream', () => stream(facts)]
    const fleet = facts.fleet()
    if (fleet) yield ['fleet', () => fleetEntries(fleet)]
  }
}

function program(facts: Facts, address: string): Entry[] {
  return [
    ['version', facts.version],
    ['build', 'evenkeel'],
    ['address', address],
    ['generation', facts.generation()],
    ['load_time', new Date(facts.loadedAt())],
  ]
}

/** The named members in that order, whatever the order of the object. */
function pick<K extends string>(from: Readonly<Record<K, Node>>, keys: readonly K[]): Record<string, Node> {
  return Object.fromEntries(keys.map((key) => [key, from[key]]))
}

function http(facts: Facts): Entry[] {
  return [
    ['server_zones', () => clientZones(facts.serverZones(), true)],
    ['location_zones', () => clientZones(facts.locationZones(), false)],
    ['caches', empty],
    ['limit_conns', empty],
    ['limit_reqs', empty],
    ['upstreams', () => groups(facts, 'http')],
  ]
}

function stream(facts: Facts): Entry[] {
  return [
    ['server_zones', () => sessionZones(facts.streamZones())],
    ['limit_conns', empty],
    ['upstreams', () => groups(facts, 'stream')],
  ]
}
