import { isAbsolute, resolve } from 'node:path'
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
