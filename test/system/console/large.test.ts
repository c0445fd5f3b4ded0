import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { backend } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { excess } from '../../support/page-checks.js'
import { start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

const count = 200

test('two hundred peers are shown, kept up to date and sorted without the page standing still', async () => {
  await using peer = await backend({ body: 'ok' }, { host: '0.0.0.0' })
  const servers = Array.from(
    { length: count },
    (_, i) => `server 127.0.${1 + (i >> 7)}.${1 + (i & 127)}:${peer.port};`,
  )
  const config = (more = '') => `http {
    access_log off;
    upstream big { zone big 8m; ${servers.join(' ')} ${more} }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://big; upstream_probe alive type=tcp interval=2s; } }
  }`
  await using sidecar = await start(config())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  await page
    .locator('.peer')
    .nth(count - 1)
    .waitFor({ state: 'attached', timeout: 5000 })
  // How long the page does not answer at a time, from here on.
  await page.evaluate(`
    window.longest = 0
    window.pictures = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
    }).observe({ type: 'longtask' })
    const next = () => { window.pictures += 1; requestAnimationFrame(next) }
    requestAnimationFrame(next)
    window.rows = [...document.querySelectorAll('.peer')]
  `)
  let on = true
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (on) {
        // Whether each is answered is not what is looked at here.
        await fetch(sidecar.url).then(
          (response) => response.text(),
          () => '',
        )
        await wait(10)
      }
    }),
  )
  await page.waitForTimeout(3500)
  // Whoever scrolls sees what is now.
  await page.locator('.peer').nth(150).scrollIntoViewIfNeeded()
  await page.locator('.peer').nth(150).locator('[data-column="rate"]').getByText(/\d/).waitFor(soon)
  // It says what they are.
  const [longest, pictures] = (await page.evaluate('[window.longest, window.pictures]')) as [number, number]
  // What sorting by hand costs, with the page laid out anew.
  const costs = await page.evaluate(`[...document.querySelectorAll('.peers thead button')].map((button) => {
    const began = performance.now()
    button.click()
    document.body.getBoundingClientRect()
    return performance.now() - began
  })`)
  await page.locator('[aria-sort="descending"], [aria-sort="ascending"]').waitFor()
  await page.getByRole('searchbox', { name: 'Filter groups and peers' }).fill('127.0.2.')
  await until(async () => (await page.locator('.peer').count()) === 72)
  await page.getByRole('searchbox', { name: 'Filter groups and peers' }).fill('')
  await until(async () => (await page.locator('.peer').count()) === count)
  on = false
  await load
  // An array of numbers, as written above; the machine may be busy with something else, but not every time.
  const cheapest = Math.min(...(costs as number[]))
  assert.ok(cheapest < 300, `sorting takes ${cheapest} ms`)
  assert.ok(longest < 3000, `the page stood still for ${longest} ms`)
  assert.ok(pictures > 20, `${pictures} pictures`)
  const kept = await page.evaluate('window.rows.filter((row) => row.isConnected).length')
  assert.equal(kept, count, 'rows are changed in place')
  assert.ok((await page.evaluate(excess)) <= 0)
  clean(watched)
})

test('many groups are lines that open, with those in trouble alone on demand', async () => {
  await using peer = await backend({ body: 'ok' })
  const names = Array.from({ length: 40 }, (_, i) => `service-${i}`)
  const groups = names.map(
    (name) =>
      `upstream ${name} { zone ${name} 64k; server ${peer.address}; server 127.0.0.1:9 ${name === 'service-7' ? 'down' : 'backup'}; }`,
  )
  await using sidecar = await start(
    `http { ${groups.join(' ')} server { listen 127.0.0.1:PORT; location / { proxy_pass http://service-0; } } }`,
  )
  const watched = await visit(browser, sidecar.admin, { path: '/#groups/service-30' })
  const { page } = watched
  const section = page.getByRole('region', { name: 'service-30' })
  await section.locator('.peer').first().waitFor(soon)
  await until(async () => Number(await page.evaluate('scrollY')) > 100)
  assert.equal(await page.locator('.peers:visible').count(), 1, 'only the one that was asked for is open')
  await page.getByRole('button', { name: /^Trouble 1$/ }).click()
  await page.getByRole('region', { name: 'service-7' }).waitFor()
  assert.equal(await page.locator('.group').count(), 1)
  await page.getByRole('button', { name: /^Trouble 1$/ }).click()
  await page.getByRole('searchbox', { name: 'Filter groups and peers' }).fill('service-3')
  await until(async () => (await page.locator('.group').count()) === 11)
  await page.getByRole('button', { name: 'Close all' }).click()
  assert.equal(await page.locator('.peers:visible').count(), 0)
  clean(watched)
})
