import { formatAddress, listenAddress, portNumber } from './address.ts'
import { Fault } from './fault.ts'

/**
 * What `listen` says in canonical form: an address, or a range of ports of one host as `*:8000-8010`.
 * @param text as for `listenAddress`, with a last port behind the first one where wanted
 * @throws Fault with nginx's text
 */
export function listenText(text: string): string {
  const [, host = '', first = '', last = ''] =
    /^(\[[^\]]*\]:|[^:[\]]*:|)([^:[\]]*)-([^:[\]]*)$/.exec(text) ?? []
  const range = /^unix:/i.test(text)
    ? false
    : host === ''
      ? /^\d+-\d+$/.test(text)
      : last !== '' || first !== ''
  if (!range) return formatAddress(listenAddress(text))
  const of = `"${text}" of the "listen" directive`
  const [from = 0, to = 0] = [portNumber(first), portNumber(last)]
  if (from === 0 || to === 0) throw new Fault(`invalid port in ${of}`)
  const address = formatAddress(listenAddress(`${host}${first}`, 'listen', text))
  if (from > to) throw new Fault(`invalid port range in ${of}`)
  return from === to ? address : `${address}-${to}`
}

/** Each address of what `listenText` has made. */
export function listenTexts(text: string): readonly string[] {
  const [, host = '', first = '', last = ''] = /^(.*:)(\d+)-(\d+)$/.exec(text) ?? []
  if (last === '' || text.startsWith('unix:')) return [text]
  const from = Number(first)
  return Array.from({ length: Number(last) - from + 1 }, (_, i) => `${host}${from + i}`)
}

/** Lines of `listen`, one for each address. */
export function eachListen<T extends { readonly address: string }>(lines: readonly T[]): readonly T[] {
  return lines.flatMap((line) => listenTexts(line.address).map((address) => ({ ...line, address })))
}
