import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { failureText } from './system-error.ts'

/** Where lines go, and how to write there without waiting. */
export type Sink =
  /** A regular file: written in the background, as a disk may be slow. */
  | { readonly kind: 'file'; readonly fd: number; readonly own: boolean }
  /** A pipe, terminal or device that says when it is full: written at once. */
  | { readonly kind: 'pipe'; readonly fd: number; readonly own: boolean }
  /** A standard stream that cannot be opened anew (a socket, another user's pipe): Node's own stream. */
  | {
      readonly kind: 'stream'
      readonly fd: number
      readonly own: boolean
      readonly stream: NodeJS.WriteStream
    }

/** Number of the standard stream that a path means. */
export function standard(path: string): 1 | 2 | undefined {
  if (path === '/dev/stdout') return 1
  return path === '/dev/stderr' ? 2 : undefined
}

export function openSink(path: string): Sink {
  const number = standard(path)
  return number === undefined ? openPath(path) : openStandard(number)
}

const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY

function openPath(path: string): Sink {
  let fd: number
  try {
    fd = openSync(path, flags | constants.O_CREAT, 0o644)
  } catch (error) {
    throw new Error(`open() "${path}" failed (${failureText(error)})`)
  }
  return { kind: fstatSync(fd).isFile() ? 'file' : 'pipe', fd, own: true }
}

/**
 * A pipe or terminal is opened a second time, so that writing without waiting can be asked for without changing the
 * descriptor that the parent and other processes share. A regular file is not: its position is shared too.
 */
function openStandard(number: 1 | 2): Sink {
  try {
    if (fstatSync(number).isFile()) return { kind: 'file', fd: number, own: false }
    return { kind: 'pipe', fd: openSync(`/proc/self/fd/${number}`, flags), own: true }
  } catch {
    const stream = number === 1 ? process.stdout : process.stderr
    // Without a listener a reader that goes away would end the process; each write hears of it anyway.
    stream.on('error', () => {})
    return { kind: 'stream', fd: number, own: false, stream }
  }
}

/**
 * Writes, waiting for a reader until then.
 * @returns how many bytes were taken
 */
export function writeAll(fd: number, data: Buffer, until: number): number {
  for (let from = 0; ; ) {
    try {
      from += writeSync(fd, data, from)
      if (from === data.length) return from
    } catch (error) {
      if (!isFull(error) || performance.now() > until) return from
      nap()
    }
  }
}

/** Stands still for a moment. */
export function nap(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
}

export function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
}
