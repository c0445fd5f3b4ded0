import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { InjectOptions } from 'fastify'
import { pageFiles, wantsPage } from '../../../sidecar/admin/page.ts'
import { adminApp } from '../../../sidecar/admin/server.ts'
import { facts } from './facts.ts'

const folder = new URL('../../../dashboards/console/', import.meta.url)
const browsers = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
const source = (name: string) => readFileSync(new URL(name, folder), 'utf8')
const scripts = pageFiles.filter((name) => name.endsWith('.js'))

async function ask(request: InjectOptions | string, readonly = false) {
  const app = adminApp(facts(), { readonly, local: true, unix: false, report: () => {} })
  const answer = await app.inject(request)
  await app.close()
  return answer
}

test('a browser gets the page at /, and everybody else the list', async () => {
  const page = await ask({ url: '/', headers: { accept: browsers } })
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.match(page.body, /<title>evenkeel<\/title>/)
  assert.equal(page.headers['vary'], 'accept')
  for (const accept of [undefined, '*/*', 'text/plain', 'application/json']) {
    const headers: Record<string, string> = accept === undefined ? {} : { accept }
    const list = await ask({ url: '/', headers })
    assert.match(String(list.headers['content-type']), /^text\/plain/, String(accept))
    assert.match(list.body, /^evenkeel 0\.1\.0, up for 60 s/)
    assert.equal(list.headers['vary'], 'accept')
  }
})

test('who asks for HTML and for plain text gets what it prefers', () => {
  const said = [
    ['text/html', true],
    [browsers, true],
    ['TEXT/HTML; q=0.5', true],
    ['text/html, text/plain', true],
    ['text/html;q=0.4, text/plain;q=0.5', false],
    ['text/html;q=0', false],
    ['text/html;q=x', false],
    ['*/*', false],
    ['', false],
    [undefined, false],
  ] as const
  for (const [accept, html] of said) assert.equal(wantsPage(accept), html, String(accept))
})

test('the page may load its own files and ask its own server, and nothing else', async () => {
  for (const url of ['/', '/console/main.js', '/console/console.css', '/console/icon.svg']) {
    const { headers } = await ask({ url, headers: { accept: browsers } })
    const policy = String(headers['content-security-policy'])
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "img-src 'self' data:",
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.split('; ').includes(rule), `${url}: ${rule}`)
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['referrer-policy'], 'no-referrer')
  }
})

test('every file of the page is served with its type, and no other file', async () => {
  const types = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }
  for (const name of pageFiles) {
    if (name === 'index.html') continue
    const { statusCode, headers, body } = await ask(`/console/${name}`)
    assert.equal(statusCode, 200, name)
    // The ending is one of these.
    const type = types[name.split('.').at(-1) as keyof typeof types]
    assert.ok(String(headers['content-type']).startsWith(type), name)
    assert.equal(body, source(name))
  }
  for (const url of [
    '/console/',
    '/console/index.html',
    '/console/told.js',
    '/console/tsconfig.json',
    '/console/..%2fadmin%2fpage.ts',
    '/console/%2e%2e/%2e%2e/package.json',
    '/console/constructor',
  ])
    assert.ok([400, 404].includes((await ask(url)).statusCode), url)
})

test('a file that the browser has is not sent again', async () => {
  const { headers } = await ask('/console/main.js')
  const etag = String(headers['etag'])
  assert.match(etag, /^"[\w-]+"$/)
  assert.equal(headers['cache-control'], 'no-cache')
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await ask({ url: '/console/main.js', headers: { 'if-none-match': tag } })
    assert.equal(again.statusCode, 304, tag)
    assert.equal(again.body, '')
    assert.equal(again.headers['etag'], etag)
  }
  const page = { url: '/', headers: { accept: browsers, 'if-none-match': etag } }
  assert.equal((await ask(page)).statusCode, 200)
  const head = await ask({ url: '/console/main.js', method: 'HEAD' })
  assert.equal(head.statusCode, 200)
  assert.equal(head.body, '')
})

test('a readonly address has no page', async () => {
  for (const url of ['/', '/console/main.js', '/live'])
    assert.equal((await ask({ url, headers: { accept: browsers } }, true)).statusCode, 404, url)
})

test('all that the page imports is served, and all that is served is there', () => {
  // Types alone: nothing imports it at run time.
  const unserved = ['told.js', 'tsconfig.json']
  const there = readdirSync(folder).filter((name) => !unserved.includes(name))
  assert.deepEqual(there.sort(), [...pageFiles].sort())
  const reached = new Set(['main.js'])
  for (const name of reached) {
    for (const [, target = ''] of source(name).matchAll(/^(?:import .*|} )from '([^']+)'$/gm)) {
      assert.match(target, /^\.\/[\w-]+\.js$/, name)
      reached.add(target.slice(2))
    }
  }
  assert.deepEqual([...reached].sort(), [...scripts].sort())
})

test('nothing in the page is inline, comes from another host, or makes markup of text', () => {
  const html = source('index.html')
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)|https?:|\/\//)
  assert.doesNotMatch(source('console.css'), /@import|url\(/)
  for (const name of scripts) {
    const text = source(name).replaceAll('http://www.w3.org/2000/svg', '')
    assert.doesNotMatch(
      text,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|https?:\/\//,
      name,
    )
    assert.doesNotMatch(text, /setAttribute\('style'|style\.cssText/, name)
  }
})
