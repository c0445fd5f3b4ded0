import { isAbsolute, resolve } from 'node:path'
import { ConfigError } from './config/error.ts'
import type { LoadOptions } from './config/load.ts'
import type { Model } from './config/model.ts'

/** Where the configuration comes from, as the command line says. */
export interface Source {
  /** Absolute. */
  readonly file: string
  /** Folder that relative paths start from, absolute. */
  readonly prefix: string
  /** Directives of `-g`. */
  readonly globals: string | undefined
  /** `-e`: where errors go unless the configuration says, as written. */
  readonly errorLog: string | undefined
}

export function loadOptions({ prefix, globals }: Source): LoadOptions {
  return globals === undefined ? { prefix } : { prefix, globals }
}

/** A path of the configuration; the standard streams and other absolute ones are themselves. */
export function pathOf(path: string, prefix: string): string {
  return isAbsolute(path) || path === 'stderr' || path === 'stdout' ? path : resolve(prefix, path)
}

export function pidPath(model: Model, prefix: string): string {
  return pathOf(model.pid ?? 'evenkeel.pid', prefix)
}

/** The files of every `access_log` of the configuration, absolute. */
export function accessLogPaths(part: unknown, prefix: string): string[] {
  if (typeof part !== 'object' || part === null) return []
  return Object.entries(part).flatMap(([key, value]) => {
    if (key !== 'access_log' || !Array.isArray(value)) return accessLogPaths(value, prefix)
    return value.map((line: { readonly path: string }) => pathOf(line.path, prefix))
  })
}

/** A mistake as the program tells it: nginx's text and, where it is known, the place. */
export function mistakeOf(error: unknown): string {
  if (error instanceof ConfigError) {
    if (error.line > 0) return `${error.text} in ${error.file}:${error.line}`
    // What names its file needs no place, and a file that cannot be opened has none.
    return error.text.includes(error.file) ? error.text : `${error.text} in ${error.file}`
  }
  return error instanceof Error ? error.message : String(error)
}
