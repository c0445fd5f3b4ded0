/** How a query ended, by the words of the status tree. */
export const responseKinds = [
  'success',
  'timedout',
  'format_error',
  'server_failure',
  'not_found',
  'unimplemented',
  'refused',
  'other',
] as const
export type ResponseKind = (typeof responseKinds)[number]

/** What a resolver has done since the program began. */
export interface ResolverCounts {
  /** Look-ups of names, of services, and of addresses (which nothing asks for). */
  readonly queries: { name: number; srv: number; addr: number }
  /** Messages that were sent, by type of record. */
  readonly sent: { a: number; aaaa: number; srv: number; ptr: number }
  /** How they ended. */
  readonly responses: Record<ResponseKind, number>
}

export function noCounts(): ResolverCounts {
  return {
    queries: { name: 0, srv: 0, addr: 0 },
    sent: { a: 0, aaaa: 0, srv: 0, ptr: 0 },
    responses: {
      success: 0,
      timedout: 0,
      format_error: 0,
      server_failure: 0,
      not_found: 0,
      unimplemented: 0,
      refused: 0,
      other: 0,
    },
  }
}

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
