import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { ConfigError } from '../../../sidecar/config/error.ts'
import { type Loaded, loadText, type Syntax } from '../../../sidecar/config/load.ts'
import { printModel } from '../../../sidecar/config/print.ts'

/**
 * A pair file has a text in nginx's syntax, in YAML after a line of dashes with `yaml`, or both, and after the last
 * line of dashes what is expected: the model as YAML, after lines with `error:`, `warning:` and `notice:`.
 */
const pairs = new URL('./pairs/', import.meta.url)

const options = {
  env: { APP_PORT: '8081', GREETING: 'two words; { }' },
  prefix: new URL('./files', import.meta.url).pathname,
}

interface Source {
  readonly name: 'pair.conf' | 'pair.yaml'
  readonly text: string
}

for (const file of readdirSync(pairs).filter((name) => name.endsWith('.pair'))) {
  test(`reads ${file.slice(0, -5).replaceAll('-', ' ')}`, () => {
    const sections = readFileSync(new URL(file, pairs), 'utf8').split(/^-----+ ?(.*)\n/m)
    const expected = expectation(sections.at(-1)!)
    const sources: Source[] = []
    if (sections[0] !== '') sources.push({ name: 'pair.conf', text: sections[0]! })
    for (let i = 1; i < sections.length - 1; i += 2) {
      if (sections[i] === 'yaml') sources.push({ name: 'pair.yaml', text: sections[i + 1]! })
    }
    assert.notEqual(sources.length, 0)
    for (const source of sources) {
      if (expected.errors.length > 0) assert.equal(errorOf(source), expected.errors.shift())
      else succeeds(source, expected)
    }
  })
}

interface Expectation {
  readonly errors: string[]
  readonly warnings: string[]
  readonly notices: string[]
  readonly model: unknown
}

function expectation(text: string): Expectation {
  const said = (kind: string) =>
    [...text.matchAll(new RegExp(`^${kind}: (.*)$`, 'gm'))].map((match) => match[1]!)
  const model = text.replace(/^(?:error|warning|notice): .*\n/gm, '')
  return {
    errors: said('error'),
    warnings: said('warning'),
    notices: said('notice'),
    model: parse(model) ?? {},
  }
}

function read(source: Source): Loaded {
  const syntax: Syntax = source.name === 'pair.conf' ? 'nginx' : 'yaml'
  return loadText(source.text, source.name, syntax, options)
}

function errorOf(source: Source): string {
  try {
    read(source)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message
  }
  return 'none'
}

function succeeds(source: Source, expected: Expectation): void {
  const { model, warnings, notices } = read(source)
  assert.deepEqual(plain(model), expected.model)
  const own = (texts: readonly string[]) => texts.filter((text) => text.includes(source.name))
  assert.deepEqual(warnings, own(expected.warnings))
  assert.deepEqual(notices, own(expected.notices))
  const again = loadText(printModel(model), 'printed.yaml', 'yaml', options)
  assert.deepEqual(again.model, model)
}

/** Records by name have no prototype, which a parsed YAML has. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
