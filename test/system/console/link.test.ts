import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { mostViewers } from '../../../sidecar/admin/live.ts'
import { backend } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { compiled, launcher, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

const config = (address: string) => `http {
  upstream demo { zone demo 1m; server ${address}; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://demo; } }
}`

test('a lost link is said, with how old the page is, and a new run of the program begins anew', async () => {
  await using peer = await backend({ body: 'ok' })
  await using sidecar = await start(config(peer.address))
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  for (let i = 0; i < 30; i++) await fetch(sidecar.url).then((response) => response.text())
  await watched.row(peer.address).getByRole('button').click()
  const attempts = page.locator('.block', { hasText: 'Since the start' }).locator('dd').first()
  await attempts.getByText('30', { exact: true }).waitFor(soon)

  sidecar.signal('SIGKILL')
  await sidecar.exited
  const banner = page.locator('[data-banner="link"]')
  await banner
    .getByText(/^No link since \d s \(.+\)\. What you see is from \d\d:\d\d:\d\d\. Trying again/)
    .waitFor(soon)
  await page.locator('#readiness').getByText('no link').waitFor(soon)
  assert.equal(await page.title(), '(no link) evenkeel')
  // What is old does not look as if it were not.
  assert.match(
    String(await page.evaluate('getComputedStyle(document.querySelector("main")).filter')),
    /grayscale/,
  )

  const again = spawn(launcher, ['-c', sidecar.file], {
    cwd: sidecar.folder,
    env: { ...process.env, ...compiled },
    stdio: 'ignore',
  })
  try {
    await banner.waitFor({ state: 'detached', timeout: 15_000 })
    await page.locator('#readiness').getByText('ready').waitFor(soon)
    assert.equal(await page.title(), 'evenkeel')
    assert.match((await page.getByRole('status').first().textContent()) ?? '', /^The link is back/)
    await fetch(sidecar.url).then((response) => response.text())
    await watched.row(peer.address).getByRole('button').click()
    await attempts.getByText('1', { exact: true }).waitFor({ timeout: 5000 })
  } finally {
    again.kill('SIGKILL')
  }
  // While nobody answers the browser itself says that in its console.
  const faults = watched.faults.filter((text) => !text.includes('net::ERR_'))
  clean({ ...watched, faults })
})

test('a page that finds no room is told so, and takes the place that becomes free', async () => {
  await using peer = await backend({ body: 'ok' })
  await using sidecar = await start(config(peer.address))
  const controls = Array.from({ length: mostViewers }, () => new AbortController())
  // Kept: a response that nobody holds is given up.
  const streams = []
  for (const { signal } of controls) streams.push(await fetch(`${sidecar.admin}/live`, { signal }))
  assert.ok(streams.every(({ status }) => status === 200))
  const watched = await visit(browser, sidecar.admin)
  const banner = watched.page.locator('[data-banner="link"]')
  await banner.getByText(/16 pages watch already/).waitFor({ timeout: 5000 })
  for (const control of controls) control.abort()
  await watched.row(peer.address).getByText('up', { exact: true }).waitFor({ timeout: 15_000 })
  await banner.waitFor({ state: 'detached', ...soon })
})

test('a reload keeps those who watch, and neither they nor a drain hold the program', async () => {
  await using peer = await backend({ body: 'ok' })
  await using sidecar = await start(config(peer.address))
  const stream = await fetch(`${sidecar.admin}/live`)
  let heard = ''
  let ended = false
  const reading = (async () => {
    for await (const piece of stream.body!.pipeThrough(new TextDecoderStream())) heard += piece
  })()
    .catch(() => {})
    .finally(() => {
      ended = true
    })
  await until(() => heard.includes('"generation":1'))
  await sidecar.reload()
  await until(() => heard.includes('"generation":2'))
  assert.equal(ended, false)
  sidecar.signal('SIGTERM')
  const began = performance.now()
  const { code } = await sidecar.exited
  assert.equal(code, 0)
  assert.ok(performance.now() - began < 2000, 'nobody who watches is waited for')
  await reading
})

test('an address that a reload takes away lets those go who watch there', async () => {
  await using peer = await backend({ body: 'ok' })
  const text = (more: string) => `admin 127.0.0.1:ADMIN; ${more} ${config(peer.address)}`
  await using sidecar = await start(text('admin 127.0.0.1:PORT2;'))
  const stream = await fetch(`http://127.0.0.1:${sidecar.ports['PORT2']}/live`)
  const over = (async () => {
    let events = 0
    for await (const piece of stream.body!.pipeThrough(new TextDecoderStream()))
      events += piece.split('event: state').length - 1
    return events
  })()
  await sidecar.reload(text(''))
  assert.ok((await over) >= 1)
})
