import { createRequire } from 'node:module'
import type { CreateNodeOptions, ToStringOptions } from 'yaml'

const require = createRequire(import.meta.url)

/**
 * A value as YAML. The library is read when it is first needed: most starts need none.
 * @param options of the library's `stringify`
 */
export function writeYaml(value: unknown, options: CreateNodeOptions & ToStringOptions): string {
  // What is required under that name is that module.
  const { stringify } = require('yaml') as typeof import('yaml')
  return stringify(value, options)
}
