import type { Static } from 'typebox'
import { Type } from '../../../feedback/schema-type.ts'
import { directive, type Part } from '../directive.ts'
import { Fault } from '../fault.ts'
import { type FleetUrl, fleetUrl, shownUrl } from '../fleet-url.ts'
import { flag, text, time } from '../schema.ts'
import { formatTime, timeMs } from '../units.ts'

/** Less would be nothing but traffic. */
const leastInterval = 10

/** Where the directive says nothing else, milliseconds. */
export const fleetTimes = { interval: 200, ttl: 5000, timeout: 100 } as const

/** Names that people read, in keys and on the screen. A half of a surrogate pair could not be written into a key. */
const name = Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$' })
const path = Type.String({ pattern: '^[^\\r\\n\\u0000]+$' })

const args = Type.Object({
  urls: Type.Array(text),
  group: Type.Optional(name),
  interval: Type.Optional(time),
  ttl: Type.Optional(time),
  name: Type.Optional(name),
  // Braces would take the place of the braces that keep a group's keys together in a cluster.
  prefix: Type.Optional(Type.String({ pattern: '^[^\\s{}\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$' })),
  sentinel: Type.Optional(name),
  cluster: Type.Optional(flag),
  user: Type.Optional(name),
  password_file: Type.Optional(path),
  ca: Type.Optional(path),
  cert: Type.Optional(path),
  key: Type.Optional(path),
  timeout: Type.Optional(time),
  required: Type.Optional(flag),
})

type Fleet = Static<typeof args>

export const fleetDirectives = [
  directive({
    name: 'fleet',
    in: ['main'],
    doc:
      'Other instances to balance together with, through Redis: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://` for TLS. ' +
      '`group` names the app and has to differ between apps that share one Redis. ' +
      '`timeout` is the time for one command; see below for connecting.',
    default: 'group=default interval=200ms ttl=5s prefix=evenkeel timeout=100ms',
    args,
    syntax:
      'fleet URL [URL …] [group=NAME] [interval=TIME] [ttl=TIME] [name=TEXT] [prefix=TEXT] [sentinel=NAME] [cluster] ' +
      '[user=NAME] [password_file=PATH] [ca=PATH] [cert=PATH key=PATH] [timeout=TIME] [required];',
    split,
    tidy(fleet) {
      if (fleet.urls.length === 0) throw new Fault('invalid number of arguments in "fleet" directive')
      const urls = fleet.urls.map(fleetUrl)
      checkUrls(urls, fleet)
      checkTls(urls, fleet)
      checkTimes(fleet)
      return { ...fleet, urls: urls.map(({ text }) => text) }
    },
  }),
  directive({
    name: 'fleet',
    in: ['upstream', 'stream upstream'],
    doc: 'Keeps a group out of the fleet: this instance balances it on what it sees itself.',
    args: Type.Literal('off'),
    wrong: (word) => `invalid value "${word}" in "fleet" directive, it must be "off" here`,
    off: true,
    syntax: 'fleet off;',
  }),
]

/** URLs may hold `=`, so what stands before the first of `=` and `://` tells them from parameters. */
function split(words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  const urls: string[] = []
  for (const [i, word] of words.entries()) {
    const [, parameter, value] = /^(\w+)(?:=(.*))?$/s.exec(word) ?? []
    if (parameter === 'urls') throw new Fault(`invalid parameter "${shownUrl(word)}"`)
    if (i === 0 || parameter === undefined) urls.push(word)
    else parts[parameter] = value ?? true
  }
  return { urls, ...parts }
}

function checkUrls(urls: readonly FleetUrl[], { sentinel, cluster }: Fleet): void {
  const [first] = urls
  for (const url of urls) {
    if (url.tls !== first!.tls) {
      throw new Fault(`${of(url)} has another scheme than "${shownUrl(first!.text)}"`, 'urls')
    }
    if (cluster && url.database > 0) {
      throw new Fault(`invalid database number in ${of(url)}, a cluster has 0 alone`, 'urls')
    }
  }
  if (sentinel !== undefined && cluster) {
    throw new Fault('"sentinel" and "cluster" parameters are incompatible', 'sentinel')
  }
}

function of({ text }: FleetUrl): string {
  return `"${shownUrl(text)}" of the "fleet" directive`
}

function checkTls([first]: readonly FleetUrl[], fleet: Fleet): void {
  for (const name of ['ca', 'cert', 'key'] as const) {
    if (fleet[name] !== undefined && !first!.tls) {
      throw new Fault(`"${name}" parameter requires "rediss://"`, name)
    }
  }
  if (fleet.cert !== undefined && fleet.key === undefined) {
    throw new Fault('"cert" parameter requires "key"', 'cert')
  }
  if (fleet.key !== undefined && fleet.cert === undefined) {
    throw new Fault('"key" parameter requires "cert"', 'key')
  }
}

/** What an instance has told must outlive a message or two that get lost. */
function checkTimes(fleet: Fleet): void {
  const interval = ms(fleet.interval, fleetTimes.interval)
  const ttl = ms(fleet.ttl, fleetTimes.ttl)
  if (interval < leastInterval) {
    const least = formatTime(leastInterval)
    throw new Fault(`interval "${fleet.interval}" is too short, at least ${least} expected`, 'interval')
  }
  if (ttl < 3 * interval) {
    const least = formatTime(3 * interval)
    const text = `ttl "${formatTime(ttl)}" is too short, at least three intervals, ${least}, expected`
    throw new Fault(text, fleet.ttl === undefined ? 'interval' : 'ttl')
  }
  if (ms(fleet.timeout, fleetTimes.timeout) === 0) {
    throw new Fault(`invalid parameter "timeout=${fleet.timeout}"`, 'timeout')
  }
}

function ms(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : (timeMs(text) ?? otherwise)
}
