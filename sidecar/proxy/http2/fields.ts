import { token } from '../http1/fields.ts'

/** Fields that HTTP/2 has no place for (RFC 9113 section 8.2.2). */
export const ofConnections = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'te',
])

/** Fields as Node wants them where it takes no list: by name, the values of one name in a list. */
export function collected(headers: readonly string[]): Record<string, number | string | string[]> {
  const fields: Record<string, string[]> = Object.create(null)
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    if (ofConnections.has(name) || !token.test(name)) continue
    fields[name] ??= []
    fields[name].push(trimmed(headers[i + 1]!))
  }
  return fields
}

/** RFC 9113 section 8.2.1: what is at the ends of a value in HTTP/1.1 has no place here. */
export function trimmed(value: string): string {
  return /^[ \t]|[ \t]$/.test(value) ? value.replace(/^[ \t]+|[ \t]+$/g, '') : value
}
