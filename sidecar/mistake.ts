import { ConfigError } from './config/error.ts'

/** A mistake as the program tells it: nginx's text and, where it is known, the place. */
export function mistakeOf(error: unknown): string {
  if (error instanceof ConfigError) {
    if (error.line > 0) return `${error.text} in ${error.file}:${error.line}`
    // What names its file needs no place, and a file that cannot be opened has none.
    return error.text.includes(error.file) ? error.text : `${error.text} in ${error.file}`
  }
  // These are never the configuration's fault: whoever mends the program wants to know where.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) {
    return stackOf(error)
  }
  return error instanceof Error ? error.message : String(error)
}

/** What an exception has to say to whoever mends its cause, in one line. */
export function stackOf(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return text.replace(/\n\s*/g, '; ')
}
