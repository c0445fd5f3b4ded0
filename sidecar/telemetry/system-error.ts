import { getSystemErrorMap } from 'node:util'

/** The C library's words, as nginx logs them, where they differ from Node's by more than a capital. */
const texts: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'Cannot assign requested address',
  ECONNREFUSED: 'Connection refused',
  ECONNRESET: 'Connection reset by peer',
  EHOSTUNREACH: 'No route to host',
  EISDIR: 'Is a directory',
  EMFILE: 'Too many open files',
  ENFILE: 'Too many open files in system',
  ENOENT: 'No such file or directory',
  ENOMEM: 'Cannot allocate memory',
  ENOSPC: 'No space left on device',
  ENXIO: 'No such device or address',
  EPIPE: 'Broken pipe',
  EROFS: 'Read-only file system',
  ETIMEDOUT: 'Connection timed out',
}

/**
 * A failed system call in nginx's words: `111: Connection refused`.
 * @param code Node's name of it, `ECONNREFUSED`
 * @returns undefined for what is no system error
 */
export function systemError(code: string): string | undefined {
  for (const [number, [name, text]] of getSystemErrorMap()) {
    if (name !== code) continue
    return `${-number}: ${texts[code] ?? text.slice(0, 1).toUpperCase() + text.slice(1)}`
  }
  return undefined
}

/** The same for an exception; its message where it is no system error. */
export function failureText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return systemError(code) ?? error.message
}
