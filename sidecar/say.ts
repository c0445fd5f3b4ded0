/** Writes a line of the command line's own to standard error, as nginx does. */
export function say(text: string): void {
  process.stderr.write(`evenkeel: ${text}\n`)
}

/** Says something and lets the program end with this code. */
export function end(code: number, ...texts: readonly string[]): void {
  for (const text of texts) say(text)
  process.exitCode = code
}
