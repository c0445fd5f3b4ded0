import { Type } from '../../../feedback/schema-type.ts'
import { serverAddress } from '../address.ts'
import { type Context, directive, type Part } from '../directive.ts'
import { Fault } from '../fault.ts'
import { line, seconds, text, time, word } from '../schema.ts'

const contexts: readonly Context[] = [
  'http',
  'server',
  'location',
  'upstream',
  'stream',
  'stream server',
  'stream upstream',
]

/** Where names are looked up: of servers with `resolve`, and those that variables of a `proxy_pass` come to. */
export const resolverDirectives = [
  directive({
    name: 'resolver',
    in: contexts,
    doc:
      'Name servers for `server … resolve`, and for names in a `proxy_pass` with variables: `host[:port]` or `[v6][:port]`. ' +
      '`valid` holds in place of what answers say of how long they are good. ' +
      'Without this line groups ask those of `/etc/resolv.conf`, and a `proxy_pass` nobody; `off` is nobody.',
    syntax: 'resolver ADDRESS … [valid=TIME] [ipv4=on | off] [ipv6=on | off] [status_zone=TEXT] | off;',
    args: Type.Object({
      addresses: Type.Array(line),
      valid: Type.Optional(seconds),
      ipv6: Type.Optional(word('on', 'off')),
      ipv4: Type.Optional(word('on', 'off')),
      status_zone: Type.Optional(text),
    }),
    off: true,
    split,
    tidy(resolver) {
      if (resolver.addresses.length === 0) throw new Fault('no name servers defined')
      for (const address of resolver.addresses) checkAddress(address)
      if (resolver.ipv4 === 'off' && resolver.ipv6 === 'off') {
        throw new Fault('"ipv4" and "ipv6" cannot both be "off"', 'ipv6')
      }
      if (resolver.status_zone === '') throw new Fault('invalid parameter "status_zone="', 'status_zone')
      return resolver
    },
  }),
  directive({
    name: 'resolver_timeout',
    in: contexts,
    doc: 'How long looking a name up may take, all its servers together.',
    default: '30s',
    args: time,
  }),
]

/** Addresses stand in any order with parameters, as in nginx. */
function split(words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  const addresses: string[] = []
  if (words.length === 0) throw new Fault('invalid number of arguments in "resolver" directive')
  for (const word of words) {
    const at = word.indexOf('=')
    if (at < 0) addresses.push(word)
    else parts[word.slice(0, at)] = word.slice(at + 1)
  }
  return { addresses, ...parts }
}

function checkAddress(text: string): void {
  try {
    if (serverAddress(text, 53).kind === 'tcp') return
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault(error.message.replace(/ in upstream "/, ' in resolver "'), 'addresses')
  }
  throw new Fault(`invalid host in resolver "${text}"`, 'addresses')
}
