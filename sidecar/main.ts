// The program: what the command line asks for. Most of the code is loaded only where it is needed, so that a small
// question has its answer soon.
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Invocation, parseArguments, signals, UsageError, usage } from './cli.ts'
import type { Loaded } from './config/load.ts'
import { mistakeOf } from './mistake.ts'
import { PidError, signalPid } from './pid-file.ts'
import { end, say } from './say.ts'
import { loadOptions, pidPath, type Source } from './source.ts'
import { version } from './version.ts'

const words = process.argv.slice(2)
// What shows in `ps` and tells `-s` that a process id is still ours.
process.title = ['evenkeel', ...words].join(' ')
await main(words)

async function main(words: readonly string[]): Promise<void> {
  if (words[0] === 'simulate') return simulate(words.slice(1))
  let asked: Invocation
  try {
    asked = parseArguments(words)
  } catch (error) {
    if (error instanceof UsageError) return end(1, error.message)
    throw error
  }
  if (asked.version !== undefined || asked.help) return tell(asked)
  const source = sourceOf(asked)
  if (source === undefined) {
    const place = asked.prefix === undefined ? '.' : asked.prefix.replace(/\/+$/, '')
    return end(
      1,
      `[emerg] neither ${place}/evenkeel.conf nor ${place}/evenkeel.yaml is there: name a configuration with -c`,
    )
  }
  if (asked.signal !== undefined) return send(source, signals[asked.signal])
  if (asked.test) return test(source, asked)
  const { serve } = await import('./serve.ts')
  await serve(source)
}

/** Which file is meant. Relative ones start from the prefix where there is one, as nginx has it. */
function sourceOf({ config, prefix, globals, errorLog }: Invocation): Source | undefined {
  const folder = prefix === undefined ? process.cwd() : resolve(prefix)
  const names = config === undefined ? ['evenkeel.conf', 'evenkeel.yaml'] : [config]
  const files = names.map((name) => resolve(folder, name))
  const file = config === undefined ? files.find((file) => existsSync(file)) : files[0]
  if (file === undefined) return undefined
  return { file, prefix: prefix === undefined ? dirname(file) : folder, globals, errorLog }
}

function tell({ version: form, help }: Invocation): void {
  // nginx writes both to standard error.
  const lines = [`evenkeel version: evenkeel/${version}`]
  if (form === 'long')
    lines.push(`running on Node.js ${process.version} (${process.platform} ${process.arch})`)
  process.stderr.write(`${lines.join('\n')}\n${help ? usage : ''}`)
}

async function simulate(words: readonly string[]): Promise<void> {
  const { simulate } = await import('./simulate/simulate.ts')
  const { OptionError } = await import('./simulate/options.ts')
  const { ConfigError } = await import('./config/error.ts')
  try {
    process.stdout.write(simulate(words, (line) => process.stderr.write(`${line}\n`)))
  } catch (error) {
    if (error instanceof OptionError) return end(1, error.message)
    if (error instanceof ConfigError) return end(1, `[emerg] ${mistakeOf(error)}`)
    throw error
  }
}

async function send(source: Source, signal: NodeJS.Signals): Promise<void> {
  const loaded = await read(source)
  if (loaded === undefined) return
  try {
    signalPid(pidPath(loaded.model, source.prefix), signal)
  } catch (error) {
    if (!(error instanceof PidError)) throw error
    end(1, `[error] ${error.message}`)
  }
}

async function test(source: Source, { quiet, dump }: Invocation): Promise<void> {
  const failed = `configuration file ${source.file} test failed`
  const loaded = await read(source, failed)
  if (loaded === undefined) return
  for (const text of loaded.warnings) say(`[warn] ${text}`)
  if (!quiet) for (const text of loaded.notices) say(`[notice] ${text}`)
  try {
    const { completed } = await import('./ready.ts')
    await completed(source, loaded, undefined)
  } catch (error) {
    return end(1, `[emerg] ${mistakeOf(error)}`, failed)
  }
  if (!quiet) {
    say(`the configuration file ${source.file} syntax is ok`)
    say(`configuration file ${source.file} test is successful`)
  }
  if (!dump) return
  const { printModel } = await import('./config/print.ts')
  process.stdout.write(printModel(loaded.model))
}

/** Loads, or says what is wrong and with what else, and lets the program end. */
async function read(source: Source, ...more: readonly string[]): Promise<Loaded | undefined> {
  const { load } = await import('./config/load.ts')
  const { ConfigError } = await import('./config/error.ts')
  try {
    return load(source.file, loadOptions(source))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    end(1, `[emerg] ${mistakeOf(error)}`, ...more)
    return undefined
  }
}
