import { compilePattern, PatternError } from '../../feedback/pattern.ts'

/** A mistake in a value, before its place in a file is known; the reader adds file and line. */
export class Fault extends Error {
  /** Name of the argument it is about; undefined for the directive as a whole. */
  readonly argument: string | undefined

  constructor(text: string, argument?: string) {
    super(visible(text))
    this.argument = argument
  }
}

/**
 * Refuses a regular expression that cannot be compiled.
 * @throws Fault
 */
export function checkPattern(source: string, anyCase: boolean): void {
  try {
    compilePattern(source, anyCase)
  } catch (error) {
    if (error instanceof PatternError) throw new Fault(error.message)
    throw error
  }
}

/** A message is one line in a log, whatever the file has. */
function visible(text: string): string {
  return text
    .replace(/[\u0000-\u001f]/g, (char) => JSON.stringify(char).slice(1, -1))
    .replaceAll('\u007f', '\\x7f')
}
