import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadText } from '../sidecar/config/load.ts'

const root = new URL('../', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')
const pages = ['README.md', ...readdirSync(new URL('docs', root)).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .map((name) => [name, readFileSync(new URL(name, root), 'utf8')] as const)

function blocks(language: string, page = readme): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(
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
  let count = 0
  for (const [page, markdown] of pages) {
    for (const text of blocks('nginx', markdown)) {
      // Some show no more than what stands in `http`, and not the group either.
      const group = text.includes('upstream backend')
        ? ''
        : 'upstream backend { zone backend 1m; server 127.0.0.1:1; }'
      const whole = /^(?:http|stream|admin|fleet)\b/m.test(text) ? text : `http {\n${group}\n${text}}\n`
      assert.deepEqual(loadText(whole, page, 'nginx').warnings, [], `${page}:\n${text}`)
      count++
    }
  }
  assert.ok(count > 20)
})

test('every configuration in YAML loads', () => {
  let count = 0
  for (const [page, markdown] of pages) {
    for (const text of blocks('yaml', markdown)) {
      // What Kubernetes reads, and rules of Prometheus, are no configuration of ours.
      if (!/^(?:http|stream|fleet|admin):/m.test(text)) continue
      loadText(text, page, 'yaml')
      count++
    }
  }
  assert.ok(count > 4)
})

test('every file that is named is there', () => {
  let count = 0
  for (const [page, markdown] of pages) {
    const named = markdown.matchAll(
      /\]\((?!#|https?:)([^)#]+)|`((?:feedback|sidecar|test|docs|probes)\/[\w./-]*)`/g,
    )
    for (const [, link, path] of named) {
      const url = link === undefined ? new URL(path ?? '', root) : new URL(link, new URL(page, root))
      if (!url.pathname.includes('NAME')) assert.ok(existsSync(url), `${page}: ${link ?? path}`)
      count++
    }
  }
  assert.ok(count > 20)
})

test('every part of a page that is linked to is there', () => {
  const anchors = new Map(
    pages.map(([page, markdown]) => {
      const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, text = '']) =>
        text
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
          .replaceAll(' ', '-'),
      )
      return [new URL(page, root).href, new Set(headings)]
    }),
  )
  let count = 0
  for (const [page, markdown] of pages) {
    for (const [, link = '', anchor = ''] of markdown.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)) {
      const there = anchors.get(new URL(link || page.replace(/^.*\//, ''), new URL(page, root)).href)
      assert.ok(there?.has(anchor), `${page}: ${link}#${anchor}`)
      count++
    }
  }
  assert.ok(count > 20)
})

test('every directive that is named is in the reference', () => {
  const reference = readFileSync(new URL('docs/reference.md', root), 'utf8')
  const prefixes = 'proxy|drain|config|admin|explain|keepalive|access|error|log'
  const named = readme.matchAll(new RegExp(`\`((?:${prefixes})_[a-z_]+)[ ;\`]`, 'g'))
  const words = new Set([...named].map((match) => match[1] ?? ''))
  assert.ok(words.size > 10)
  for (const word of words) assert.ok(reference.includes(`\`${word}`), word)
})
