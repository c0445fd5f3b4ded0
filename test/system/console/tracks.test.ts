import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { Backends } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { start } from '../../support/sidecar.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

test('tracks stand side by side with the verdict, and a method that is tried says what it would have done', async () => {
  await using peers = new Backends()
  const stable = await peers.add({ body: 'stable' })
  const canary = await peers.add({ status: 500 })
  await using sidecar = await start(`http {
    access_log off;
    upstream shop {
      zone shop 1m; split stable=50% canary=50%; shadow least_conn;
      server ${stable.address}; server ${canary.address} track=canary;
    }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://shop; proxy_next_upstream off; } }
  }`)
  for (let i = 0; i < 300; i++) await fetch(sidecar.url).then((response) => response.text())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const tracks = page.getByRole('table', { name: 'Tracks' })
  await tracks.getByRole('row', { name: /^canary 50 %/ }).waitFor()
  await page.locator('[data-verdict="fail"]').getByText('fail', { exact: true }).waitFor({ timeout: 5000 })
  // The verdict counts as trouble as the peer does whose attempts fail, and says what was compared.
  await page.getByText(/\(canary against stable, .* of the last 10 min/).waitFor(soon)
  await page.getByText('Grounds').click()
  await page
    .locator('.verdict-box pre')
    .getByText(/^fail: track canary against stable in upstream shop/)
    .waitFor(soon)

  for (let i = 0; i < 60; i++) await fetch(sidecar.url).then((response) => response.text())
  await tracks.locator('tr', { hasText: 'canary' }).getByText('100 %', { exact: true }).waitFor(soon)
  await page.getByText(/least_conn would have picked the same peer in|no pick within the span/).waitFor(soon)
  await watched
    .row(stable.address)
    .getByText(/^least_conn \d/)
    .waitFor(soon)
  const well = watched.row(canary.address).locator('[data-column="well"]')
  await well.getByText('0 %', { exact: true }).waitFor(soon)
  await well.getByText(/^5xx /).waitFor(soon)
  await page.getByRole('button', { name: 'Trouble 2' }).waitFor(soon)

  await page.getByRole('button', { name: 'Why there? shop' }).click()
  const rows = page.locator('.explanation tbody tr')
  await rows.first().waitFor(soon)
  assert.deepEqual(await rows.locator('th').allTextContents(), [stable.address, canary.address])
  await page.getByText('The same as text').click()
  await page
    .locator('.explanation pre')
    .getByText(/^upstream shop, round_robin/)
    .waitFor(soon)
  await page.getByRole('button', { name: 'Ask again' }).click()
  clean(watched)
})
