import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { Backends } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { excess, focused } from '../../support/page-checks.js'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

let browser: Browser
const peers = new Backends()
let sidecar: Sidecar
before(async () => {
  const good = await peers.add({ body: 'good' })
  const bad = await peers.add({ status: 503 })
  sidecar = await start(`http {
    access_log off;
    upstream demo {
      zone demo 1m; least_time header;
      server ${good.address}; server ${bad.address} max_fails=2; server 127.0.0.1:9 down; server 127.0.0.1:10 backup;
    }
    upstream canary { zone canary 1m; shadow least_conn; server ${good.address}; server ${bad.address} track=canary; }
    server {
      listen 127.0.0.1:PORT;
      location / { proxy_pass http://demo; proxy_next_upstream error timeout http_503; upstream_probe alive type=tcp interval=300ms; }
      location /canary { proxy_pass http://canary; }
    }
  }`)
  browser = await launchChromium()
})
after(async () => {
  await browser.close()
  await sidecar.stop()
  await peers[Symbol.asyncDispose]()
})

async function traffic(count = 10): Promise<void> {
  for (let i = 0; i < count; i++) {
    for (const path of ['/', '/canary']) await fetch(sidecar.url + path).then((response) => response.text())
  }
}

test('everything can be done with the keyboard', async () => {
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  await traffic()
  const { keyboard } = page
  const focus = async () => (await page.evaluate(focused)).name
  const [first] = await page.locator('.peer-name').allTextContents()
  await page.locator('.peer').first().waitFor()

  // Where nothing has the focus yet, one comes to the first peer.
  await keyboard.press('j')
  assert.equal(await focus(), `BUTTON ${first}`)
  await page.reload()
  await page.locator('.peer').first().waitFor()

  await keyboard.press('Tab')
  assert.equal(await focus(), 'A Skip to the groups')
  await keyboard.press('Enter')
  // Trouble alone, and all again.
  await keyboard.press('t')
  await page.getByRole('button', { name: /^Trouble/, pressed: true }).waitFor()
  assert.equal(await page.getByRole('button', { name: first!, exact: true }).count(), 0)
  await keyboard.press('t')
  // The filter, and out of it.
  await keyboard.press('/')
  await until(async () => (await focus()) === 'INPUT Filter groups and peers')
  await keyboard.type('unhealthy')
  await page.getByRole('button', { name: '127.0.0.1:10' }).waitFor(soon)
  assert.equal(await page.locator('.peer').count(), 1)
  await page.locator('#filter').fill('')
  await keyboard.press('Escape')
  // Numbers over another span.
  await keyboard.press('s')
  await page.getByRole('button', { name: '1 min', pressed: true }).waitFor()
  // Sorting.
  const table = page.getByRole('table', { name: 'Peers of demo' })
  await table.getByRole('button', { name: 'State' }).focus()
  await keyboard.press('Enter')
  assert.equal(
    await table.getByRole('columnheader', { name: 'State' }).getAttribute('aria-sort'),
    'ascending',
  )
  assert.notEqual((await table.locator('.peer-name').allTextContents())[0], first)
  // Where one is nothing moves away, though what is sorted by changes all the time.
  await table.getByRole('button', { name: 'Attempts/s' }).focus()
  await keyboard.press('Enter')
  await table.locator('.peer-name').first().focus()
  const held = await focus()
  await traffic(20)
  await page.waitForTimeout(1500)
  assert.equal(await focus(), held)
  // From peer to peer, into the details and out of them.
  await table.locator('.peer-name').first().focus()
  await keyboard.press('j')
  await keyboard.press('ArrowDown')
  await keyboard.press('k')
  const [, second] = await table.locator('.peer-name').allTextContents()
  assert.equal(await focus(), `BUTTON ${second}`)
  await keyboard.press('Enter')
  const details = page.locator('.details')
  await details.getByText('Since the start').waitFor(soon)
  await keyboard.press('Tab')
  await keyboard.press('Escape')
  await details.waitFor({ state: 'detached' })
  assert.equal(await focus(), `BUTTON ${second}`)
  // Why a request would go where.
  await keyboard.press('w')
  await page.getByRole('heading', { name: 'If a request came now' }).waitFor(soon)
  await keyboard.press('w')
  await page.getByRole('heading', { name: 'If a request came now' }).waitFor({ state: 'detached' })
  // Attempts.
  await keyboard.press('a')
  await traffic(2)
  const list = page.getByRole('listbox')
  await list.locator('.attempt').first().waitFor(soon)
  await keyboard.press('j')
  await keyboard.press('ArrowDown')
  await keyboard.press('ArrowDown')
  await page.getByRole('region', { name: 'The attempt in detail' }).waitFor()
  const active = await list.getAttribute('aria-activedescendant')
  assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true')
  await keyboard.press('Escape')
  await page.getByRole('region', { name: 'The attempt in detail' }).waitFor({ state: 'hidden' })
  await keyboard.press('p')
  await page.getByRole('button', { name: /^Go on/ }).waitFor()
  // The configuration, and a search in it.
  await keyboard.press('c')
  await page.locator('.code li').first().waitFor(soon)
  await keyboard.press('/')
  await keyboard.type('least_time')
  await page.getByText('1 of 1').waitFor()
  await keyboard.press('Escape')
  // What the keys and words are.
  await keyboard.press('?')
  const help = page.getByRole('dialog', { name: 'Keys and words' })
  await help.getByText('The peer refused the connection').waitFor()
  assert.equal(await help.locator('kbd', { hasText: /^f$/ }).count(), 0, 'there is no fleet')
  assert.equal(await focus(), 'BUTTON Close')
  // Whoever dictates can switch the single keys off.
  await help.getByRole('checkbox', { name: 'Single keys do something' }).uncheck()
  await keyboard.press('Escape')
  await help.waitFor({ state: 'hidden' })
  await keyboard.press('g')
  assert.equal(await page.locator('#view-config').isVisible(), true)
  await page.getByRole('button', { name: 'Keys and words' }).click()
  await help.getByRole('checkbox').check()
  await keyboard.press('Escape')
  // Light and dark.
  await keyboard.press('d')
  assert.equal(await page.evaluate('getComputedStyle(document.documentElement).colorScheme'), 'light')
  await keyboard.press('d')
  assert.equal(await page.evaluate('getComputedStyle(document.documentElement).colorScheme'), 'dark')
  await page.reload()
  assert.equal(await page.evaluate('document.documentElement.dataset.scheme'), 'dark', 'it is remembered')
  await keyboard.press('g')
  await page.locator('.peer').first().waitFor()
  clean(watched)
})

test('with text twice as large nothing is wider than the window, and nothing is cut', async () => {
  const watched = await visit(browser, sidecar.admin, { viewport: { width: 780, height: 900 } })
  const { page } = watched
  await page.locator('.peer').first().waitFor()
  // As a browser's own setting for the size of text does it.
  await page.evaluate('document.documentElement.style.fontSize = "26px"')
  await page.waitForTimeout(1200)
  assert.ok((await page.evaluate(excess)) <= 0)
  clean(watched)
})
