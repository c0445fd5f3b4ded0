/** Fields that speak of an HTTP/1.1 connection: HTTP/2 has none of them (RFC 9113 section 8.2.2). */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'host',
])

/**
 * The head of a request as HTTP/2 has it: names and values in turn, those that begin with a colon first.
 * @param text request line and fields of HTTP/1.1 with the final empty line, latin1
 * @param scheme `http` or `https`
 * @param host whom it is for where it names nobody: Node would make one up
 */
export function requestFields(text: string, scheme: string, host: string): string[] {
  let end = text.indexOf('\r\n')
  const first = text.indexOf(' ')
  const last = text.lastIndexOf(' ', end)
  let authority = ''
  const fields: string[] = []
  for (;;) {
    const start = end + 2
    end = text.indexOf('\r\n', start)
    if (end <= start) break
    const colon = text.indexOf(':', start)
    const name = text.slice(start, colon).toLowerCase()
    const value = text.slice(colon + 1, end).trim()
    if (name === 'host') authority = value
    // Of TE there is one word left (RFC 9113 section 8.2.2).
    if (ofConnection.has(name) || (name === 'te' && value !== 'trailers')) continue
    fields.push(name, value)
  }
  const pseudo = [':method', text.slice(0, first), ':scheme', scheme, ':path', text.slice(first + 1, last)]
  pseudo.push(':authority', authority || host)
  return [...pseudo, ...fields]
}

/** What a head or a trailer holds without the fields that begin with a colon. @param flat names and values in turn */
export function ownFields(flat: readonly string[]): string[] {
  const fields: string[] = []
  for (let i = 0; i < flat.length; i += 2) if (!flat[i]!.startsWith(':')) fields.push(flat[i]!, flat[i + 1]!)
  return fields
}

/** How long a head or a trailer would be as text, bytes. @param flat names and values in turn */
export function textLength(flat: readonly string[]): number {
  let length = 0
  for (let i = 0; i < flat.length; i += 2) length += flat[i]!.length + flat[i + 1]!.length + 4
  return length
}

/** The status that a head says; 0 where it says none. @param flat names and values in turn */
export function statusOf(raw: readonly string[]): number {
  const at = raw.indexOf(':status')
  return at < 0 ? 0 : Number(raw[at + 1])
}
