import { getSystemErrorMap } from 'node:util'

/** nginx's words where they differ from Node's: number, colon, and the C library's text. */
const texts: Readonly<Record<string, string>> = {
  EACCES: '13: Permission denied',
  EADDRINUSE: '98: Address already in use',
  EADDRNOTAVAIL: '99: Cannot assign requested address',
  EISDIR: '21: Is a directory',
  EMFILE: '24: Too many open files',
  ENOENT: '2: No such file or directory',
  ENOSPC: '28: No space left on device',
  ENOTDIR: '20: Not a directory',
  EPERM: '1: Operation not permitted',
  EROFS: '30: Read-only file system',
  ESRCH: '3: No such process',
}

/** A failed system call as nginx would log it: `2: No such file or directory`. */
export function systemError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (Object.hasOwn(texts, code)) return texts[code]!
  for (const [number, [name, text]] of getSystemErrorMap()) {
    if (name === code) return `${-number}: ${text}`
  }
  return error.message
}
