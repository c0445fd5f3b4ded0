import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadText } from '../sidecar/config/load.ts'

const root = new URL('../', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')

function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  )
}

test('the two syntaxes of README say the same', () => {
  const [nginx = ''] = blocks('nginx')
  const [yaml = ''] = blocks('yaml')
  const loaded = loadText(nginx, 'README.md', 'nginx')
  assert.deepEqual(loadText(yaml, 'README.md', 'yaml').model, loaded.model)
  assert.deepEqual([loaded.warnings, loaded.notices], [[], []])
})

test('every configuration in nginx syntax loads', () => {
  for (const text of blocks('nginx')) {
    // Some show no more than what stands in `http`, and not the group either.
    const group = text.includes('upstream backend')
      ? ''
      : 'upstream backend { zone backend 1m; server 127.0.0.1:1; }'
    const whole = /^(?:http|stream|admin|fleet)\b/m.test(text) ? text : `http {\n${group}\n${text}}\n`
    assert.deepEqual(loadText(whole, 'README.md', 'nginx').warnings, [])
  }
})

test('every file that is named is there', () => {
  const named = [
    ...readme.matchAll(/\]\((?!#|https?:)([^)#]+)|`((?:feedback|sidecar|test|docs|probes)\/[\w./-]*)`/g),
  ]
  assert.ok(named.length > 20)
  for (const [, link, path] of named) {
    const name = link ?? path ?? ''
    if (!name.includes('NAME')) assert.ok(existsSync(new URL(name, root)), name)
  }
})

test('every directive that is named is in the reference', () => {
  const reference = readFileSync(new URL('docs/reference.md', root), 'utf8')
  const prefixes = 'proxy|drain|config|admin|explain|keepalive|access|error|log'
  const named = readme.matchAll(new RegExp(`\`((?:${prefixes})_[a-z_]+)[ ;\`]`, 'g'))
  const words = new Set([...named].map((match) => match[1] ?? ''))
  assert.ok(words.size > 10)
  for (const word of words) assert.ok(reference.includes(`\`${word}`), word)
})
