import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { backend } from '../../support/backend.ts'
import { clean, picture, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { start } from '../../support/sidecar.ts'

let browser: Browser
let redis: RedisServer
before(async () => {
  browser = await launchChromium()
  redis = await redisServer()
})
after(async () => {
  await browser.close()
  await redis.stop()
})

test('the members of the fleet are listed, what they know of a peer is shown, and a lost Redis is said', async () => {
  await using peer = await backend({ body: 'ok' })
  const config = (name: string) => `fleet ${redis.url} group=shop name=${name} interval=100ms ttl=1s;
    http {
      access_log off;
      upstream demo { zone demo 1m; least_time header; server ${peer.address} max_conns=10 max_conns_scope=fleet; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://demo; } }
    }`
  await using one = await start(config('pod-one'))
  await using two = await start(config('pod-two'))
  for (let i = 0; i < 5; i++) await fetch(two.url).then((response) => response.text())
  const watched = await visit(browser, one.admin)
  const { page } = watched
  await page.locator('#facts').getByText('2 instances').waitFor({ timeout: 5000 })
  await watched.row(peer.address).getByRole('button').click()
  const fleet = page.locator('.block', { hasText: 'In the fleet' })
  await fleet.getByText('of max_conns for this instance').waitFor({ timeout: 5000 })
  await fleet.getByText('5, 100 % good').waitFor({ timeout: 5000 })

  await page.getByRole('link', { name: 'Fleet' }).click()
  const members = page.getByRole('table', { name: 'Members' })
  await members.getByRole('rowheader', { name: /^pod-one~\w+ this one$/ }).waitFor({ timeout: 8000 })
  await members.getByRole('rowheader', { name: /^pod-two~\w+$/ }).waitFor({ timeout: 8000 })
  assert.equal(await members.getByRole('row').count(), 3)
  await picture(page, 'fleet-1440-light')
  await two.stop()
  await page.locator('#facts').getByText('1 instance').waitFor({ timeout: 5000 })
  clean(watched)

  await redis.stop()
  await page
    .locator('[data-banner="fleet"]')
    .getByText(/The fleet is not reached since .* Balancing goes on/)
    .waitFor({ timeout: 8000 })
  await page.locator('#facts').getByText('not reached').waitFor({ timeout: 8000 })
})
