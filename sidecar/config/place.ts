import { ConfigError } from './error.ts'

/** Where something stands. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly syntax: 'nginx' | 'yaml'
  /** An argument as nginx would have it written; undefined for everything else. */
  readonly token?: string
}

/** @throws ConfigError always */
export function fail(place: Place, text: string): never {
  throw new ConfigError(place.file, place.line, text)
}

/** A text that is said of a place, as nginx writes it. */
export function located(text: string, place: Place): string {
  return place.line > 0 ? `${text} in ${place.file}:${place.line}` : `${text} in ${place.file}`
}
