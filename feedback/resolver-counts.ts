/** How a message to a DNS server ended, by the words of the status tree. */
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

/** What a resolver has done since the program began, by the words of Angie's API. */
export interface ResolverCounts {
  /** Look-ups of names, of services, and of addresses (which nothing asks for). */
  readonly queries: Record<'name' | 'srv' | 'addr', number>
  /** Messages that were sent, by type of record. */
  readonly sent: Record<'a' | 'aaaa' | 'srv' | 'ptr', number>
  /** How they ended. */
  readonly responses: Record<ResponseKind, number>
}

/** A resolver that has asked nobody so far. */
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
