import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, resolve } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import { check } from './check.ts'
import { ConfigError } from './error.ts'
import type { Model } from './model.ts'
import { parse } from './nginx/parse.ts'
import { type Contents, readContents, readNodes } from './nginx/read.ts'
import { fail, type Place } from './place.ts'
import { type Level, Reading } from './reading.ts'

const require = createRequire(import.meta.url)
/** Read where there is a file in YAML: its library is not to be part of every start. */
// What is required under that name is that module.
const yamlReader = () => require('./yaml/read.ts') as typeof import('./yaml/read.ts')

export interface LoadOptions {
  /** Folder that relative names of files start from; the file's own where absent. */
  readonly prefix?: string
  /** Directives of `-g`, in nginx syntax, read before the file. */
  readonly globals?: string
  /** Where `${ENV:NAME}` is looked up; the process's own where absent. */
  readonly env?: NodeJS.ProcessEnv
}

export interface Loaded {
  readonly model: Model
  /** nginx's warnings, each with its place: `TEXT in FILE:LINE`. */
  readonly warnings: readonly string[]
  /** One text for each name that was accepted and has no effect, with the place where it first stood. */
  readonly notices: readonly string[]
  /** Every file that was read, in order, as read. */
  readonly files: readonly { readonly path: string; readonly text: string }[]
  /** Where a part of this very model stood, or a key of it; undefined for what was not written. */
  at(part: object, key?: string): { readonly file: string; readonly line: number } | undefined
}

export type Syntax = 'nginx' | 'yaml'

/** Includes inside of one another; more is a circle. */
const deepestInclude = 16

/**
 * Loads and checks a configuration.
 * @throws ConfigError
 */
export function load(file: string, options: LoadOptions = {}): Loaded {
  return run(options, options.prefix ?? dirname(resolve(file)), (loading) => {
    loading.file(file, file, loading.reading.main, undefined)
  })
}

/**
 * Loads and checks a text.
 * @param name stands for the file's name in messages
 * @throws ConfigError
 */
export function loadText(text: string, name: string, syntax: Syntax, options: LoadOptions = {}): Loaded {
  return run(options, options.prefix ?? '.', (loading) => {
    loading.text(text, name, syntax, loading.reading.main)
  })
}

function run(options: LoadOptions, prefix: string, read: (loading: Loading) => void): Loaded {
  const reading = new Reading(options.env ?? process.env)
  const loading = new Loading(reading, prefix)
  if (options.globals !== undefined) loading.globals(options.globals)
  read(loading)
  // The readers put only what the table's schemas say into it, and those say what the model's types say.
  const model = reading.main.draft as Model
  check(model, reading)
  const { warnings, notices } = reading
  return { model, warnings, notices, files: loading.files, at: (part, key) => reading.at(part, key) }
}

class Loading {
  readonly files: { path: string; text: string }[] = []
  readonly reading: Reading
  readonly #prefix: string
  #depth = 0

  constructor(reading: Reading, prefix: string) {
    this.reading = reading
    this.#prefix = prefix
  }

  globals(text: string): void {
    try {
      readNodes(this.reading, parse(text, 'command line'), this.reading.main, this.#include)
    } catch (error) {
      // A line number would say nothing there.
      if (error instanceof ConfigError && error.file === 'command line') {
        throw new ConfigError(error.file, 0, error.text)
      }
      throw error
    }
  }

  /** @param from where an include asks for it; undefined for the main file */
  file(path: string, name: string, target: Level | Contents, from: Place | undefined): void {
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      const why = `open() "${path}" failed (${systemError(error)})`
      if (from) fail(from, why)
      throw new ConfigError(name, 0, why)
    }
    this.files.push({ path, text })
    this.text(text, name, /\.(?:ya?ml|json)$/i.test(path) ? 'yaml' : 'nginx', target)
  }

  text(text: string, name: string, syntax: Syntax, target: Level | Contents): void {
    if (syntax === 'yaml') {
      const { YamlFile } = yamlReader()
      new YamlFile(this.reading, text, name, this.#include).read(target)
    } else if (target.context === 'map' || target.context === 'template') {
      readContents(this.reading, parse(text, name), target, this.#include)
    } else readNodes(this.reading, parse(text, name), target, this.#include)
  }

  readonly #include = (pattern: string, target: Level | Contents, place: Place): void => {
    this.#depth += 1
    if (this.#depth > deepestInclude) fail(place, `"include" of "${pattern}" goes round in a circle`)
    const path = isAbsolute(pattern) ? pattern : resolve(this.#prefix, pattern)
    // A pattern may match nothing; a plain name must be there.
    const paths = /[*?[]/.test(path) ? globSync(path).sort() : [path]
    for (const path of paths) this.file(path, path, target, place)
    this.#depth -= 1
  }
}

function systemError(error: unknown): string {
  const { errno, message } = error as NodeJS.ErrnoException
  const known = errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1]
  if (errno === undefined || known === undefined) return message
  return `${-errno}: ${known.slice(0, 1).toUpperCase()}${known.slice(1)}`
}
