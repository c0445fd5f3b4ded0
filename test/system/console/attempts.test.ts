import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { backend } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { mortal } from '../../support/dying-threads.ts'
import { failing, GrpcClient, grpcPeer } from '../../support/grpc.ts'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

const config = (addresses: readonly string[], threads = 1) => `worker_processes ${threads};
http {
  access_log off;
  upstream demo { zone demo 1m; ${addresses.map((address) => `server ${address} max_fails=0;`).join(' ')} }
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://demo; proxy_next_upstream error timeout http_503; }
  }
}`

const ask = async (url: string, init?: RequestInit) => (await fetch(url, init)).text()

test('attempts are listed as they end, each with how it ended and what the word means', async () => {
  await using good = await backend({ body: 'good' })
  await using bad = await backend({ status: 503 })
  await using sidecar = await start(config([bad.address, good.address]))
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const list = page.getByRole('listbox', { name: 'Attempts, newest first' })
  await page.getByText('Nothing yet. Attempts are listed here as they end.').waitFor()
  await ask(`${sidecar.url}/shop/item?token=secret`)
  const failed = list.locator('.attempt', { hasText: 'http_503' })
  await failed.getByText('tried again').waitFor(soon)
  await failed.getByText(bad.address).waitFor(soon)
  const second = list.locator('.attempt', { hasText: good.address })
  await second.getByText('attempt 2').waitFor(soon)
  await second.getByText('GET /shop/item', { exact: true }).waitFor(soon)
  assert.equal(await page.getByText('secret').count(), 0, 'queries are not shown')

  await failed.click()
  const detail = page.getByRole('region', { name: 'The attempt in detail' })
  await detail.getByText('The peer answered 503, which proxy_next_upstream lists as a failure.').waitFor()
  await detail.getByText('The request went on to another attempt.').waitFor()
  assert.equal(await failed.getAttribute('aria-selected'), 'true')

  await page.getByRole('button', { name: 'Only failures' }).click()
  assert.equal(await second.count(), 0)
  assert.equal(await failed.count(), 1)
  await page.getByRole('button', { name: 'Only failures' }).click()
  await page.getByRole('searchbox', { name: 'Filter attempts' }).fill('NOT THERE')
  await page.getByText('None of those seen so far.').waitFor()
  await page.getByRole('searchbox', { name: 'Filter attempts' }).fill('/Shop/')
  assert.equal(await list.locator('.attempt').count(), 2)
  clean(watched)
})

test('the list holds still while it is paused or read, and says how many are new', async () => {
  await using good = await backend({ body: 'good' })
  await using sidecar = await start(config([good.address]))
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const lines = page.locator('.attempt')
  await ask(`${sidecar.url}/one`)
  await lines.getByText('GET /one').waitFor(soon)
  await page.getByRole('button', { name: 'Pause' }).click()
  await ask(`${sidecar.url}/two`)
  await page.getByRole('button', { name: 'Go on (1 new)' }).waitFor(soon)
  assert.equal(await lines.count(), 1)
  await page.getByRole('button', { name: 'Go on' }).click()
  await lines.getByText('GET /two').waitFor(soon)
  // With the focus in it, it is read by somebody.
  await page.getByRole('listbox').focus()
  await ask(`${sidecar.url}/three`)
  await page.getByRole('button', { name: 'Pause (1 new)' }).waitFor(soon)
  assert.equal(await lines.count(), 2)
  await page.getByRole('searchbox', { name: 'Filter attempts' }).focus()
  await lines.getByText('GET /three').waitFor(soon)
  clean(watched)
})

test('with threads the attempts of all are listed, of one that took the place of a dead one too', async () => {
  await using good = await backend({ body: 'good' })
  await using sidecar = await start(config([good.address], 2), mortal)
  const watched = await visit(browser, sidecar.admin)
  const lines = watched.page.locator('.attempt')
  /** Asks on connections of their own, which the kernel spreads over the threads. */
  const many = async (word: string) => {
    for (let i = 0; i < 20; i++) {
      await ask(`${sidecar.url}/${word}/${i}`, { headers: { connection: 'close' } })
      // Slow enough for all to be listed, whichever thread has them.
      await wait(25)
    }
    await eventually(`all of ${word} are listed`, async () => {
      const paths = await lines.locator('.a-request').allTextContents()
      return new Set(paths.filter((path) => path.includes(`/${word}/`))).size === 20
    })
  }
  await watched.page.locator('#readiness').getByText('ready').waitFor()
  await many('first')
  for (let deaths = 1; deaths <= 2; deaths++) {
    sidecar.signal('SIGUSR2')
    await watched.page.locator('#facts').getByText(`2, ${deaths} replaced`).waitFor({ timeout: 5000 })
  }
  await many('second')
  clean(watched)
})

test('more than can be listed are counted, and those that failed come first', async () => {
  await using good = await backend({ body: 'good' })
  await using bad = await backend({ status: 503 })
  await using sidecar = await start(
    config([good.address, good.address, good.address, good.address, bad.address]),
  )
  const watched = await visit(browser, sidecar.admin)
  await watched.page.locator('#readiness').getByText('ready').waitFor()
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (let i = 0; i < 30; i++) await ask(`${sidecar.url}/${i}`)
    }),
  )
  await watched.page.locator('.more').first().waitFor(soon)
  assert.match((await watched.page.locator('.more').first().textContent()) ?? '', /^and [\d,]+ more/)
  await watched.page.locator('.attempt', { hasText: 'http_503' }).first().waitFor(soon)
  clean(watched)
})

test('a call of gRPC is listed by its status, as a failure where that says so', async () => {
  await using peer = await grpcPeer({
    unary: (call, done) =>
      call.request === '0' ? done(null, '') : done(failing(Number(call.request), 'no')),
  })
  await using sidecar = await start(`http {
    upstream demo { zone demo 1m; server ${peer.address} max_fails=0; }
    server { listen 127.0.0.1:PORT; http2 on; location / { grpc_pass grpc://demo; } }
  }`)
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  await page.locator('#readiness').getByText('ready').waitFor()
  using client = new GrpcClient(sidecar.port)
  for (const status of ['0', '5', '14']) await client.unary(status)
  const lines = page.locator('.attempt')
  const looks = [
    ['OK', 'well'],
    ['NOT_FOUND', 'well'],
    ['UNAVAILABLE', 'trouble'],
  ] as const
  for (const [name, look] of looks) {
    const line = lines.filter({ has: page.locator('.a-what').getByText(name, { exact: true }) })
    await line.waitFor(soon)
    assert.equal(await line.getAttribute('data-look'), look)
  }
  await watched
    .row(peer.address)
    .getByText(/\bgrpc\b/)
    .waitFor(soon)

  await page.getByRole('button', { name: 'Only failures' }).click()
  assert.equal(await lines.count(), 1)
  await lines.click()
  await page.getByRole('region', { name: 'The attempt in detail' }).getByText('14 UNAVAILABLE').waitFor()
  await page.getByRole('searchbox', { name: 'Filter attempts' }).fill('unavail')
  assert.equal(await lines.count(), 1)
  await page.getByRole('searchbox', { name: 'Filter attempts' }).fill('internal')
  await page.getByText('None of those seen so far.').waitFor()
  clean(watched)
})
