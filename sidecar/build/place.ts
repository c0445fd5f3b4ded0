import { ConfigError } from '../config/error.ts'
import type { Loaded } from '../config/load.ts'

/** A mistake in what a part of the model says. */
export class PartError extends Error {
  readonly part: object
  readonly key: string

  /** @param key of the part; empty for the part as a whole */
  constructor(text: string, part: object, key = '') {
    super(text)
    this.part = part
    this.key = key
  }
}

/**
 * Gives a mistake that only building shows (an unknown variable, a host that cannot be found) its place: that of the
 * part that it is about, or else the first line of the configuration that has the word it is about.
 * @returns a ConfigError; what it was given when it is one already, or when no line has the word
 */
export function placed(error: unknown, loaded: Pick<Loaded, 'files' | 'at'>): unknown {
  if (!(error instanceof Error) || error instanceof ConfigError || error instanceof TypeError) return error
  if (error instanceof PartError) {
    const place = loaded.at(error.part, error.key)
    return place === undefined ? error : new ConfigError(place.file, place.line, error.message)
  }
  const [, word] = /"([^"]+)"/.exec(error.message) ?? []
  if (word === undefined) return error
  const variable = / variable$/.test(error.message)
  for (const { path, text } of loaded.files) {
    const lines = text.split('\n')
    for (const [i, line] of lines.entries()) {
      const code = line.replace(/(^|\s)#.*$/, '')
      const found = variable ? namesVariable(code, word) : code.includes(word)
      if (found) return new ConfigError(path, i + 1, error.message)
    }
  }
  return error
}

/** Whether a line has `$name` or `${name}`, and not a longer name that begins so. */
function namesVariable(line: string, name: string): boolean {
  const lower = line.toLowerCase()
  for (const mark of [`$${name.toLowerCase()}`, `\${${name.toLowerCase()}`]) {
    const at = lower.indexOf(mark)
    if (at >= 0 && !/[a-z0-9_]/.test(lower[at + mark.length] ?? '')) return true
  }
  return false
}
