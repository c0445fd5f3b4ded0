/** A finished answer, for whichever server carries it: the admin server or a location of a data port. */
export interface Answer {
  readonly status: number
  /** Lower-case names; `content-length` is among them. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty for HEAD, while the headers say what GET would bring. */
  readonly body: Buffer
}

/** Headers of an answer that no cache may keep. */
export const uncached = { expires: 'Thu, 01 Jan 1970 00:00:01 GMT', 'cache-control': 'no-cache' } as const

/** Puts an answer together from its text. */
export function answer(
  method: string,
  status: number,
  type: string,
  text: string,
  extra: Readonly<Record<string, string>> = {},
): Answer {
  const body = Buffer.from(text)
  const headers = { 'content-type': type, ...extra, 'content-length': String(body.length) }
  return { status, headers, body: method === 'HEAD' ? Buffer.alloc(0) : body }
}
