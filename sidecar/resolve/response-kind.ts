import type { ResponseKind } from '../../feedback/resolver-counts.ts'

const kindOfCode: ReadonlyMap<string, ResponseKind> = new Map([
  ['NOERROR', 'success'],
  ['FORMERR', 'format_error'],
  ['SERVFAIL', 'server_failure'],
  ['NXDOMAIN', 'not_found'],
  ['NOTIMP', 'unimplemented'],
  ['REFUSED', 'refused'],
])

/** @param code of a reply: `NOERROR`, `SERVFAIL` and so on */
export function responseKind(code: string): ResponseKind {
  return kindOfCode.get(code) ?? 'other'
}
