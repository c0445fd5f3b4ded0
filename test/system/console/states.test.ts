import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { type Backend, Backends, backend } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { eventually, type PeerStatus } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { timed } from '../../support/undisturbed.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

const config = (list: readonly Backend[], more: readonly string[] = [], location = '') => `http {
  upstream demo {
    zone demo 1m;
    ${list.map(({ address }, i) => `server ${address} ${more[i] ?? ''};`).join(' ')}
  }
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://demo; proxy_next_upstream error timeout http_503; ${location} }
  }
}`

/** Asks until the program itself says that the peer is in that state. */
async function becomes(sidecar: Sidecar, peer: string, state: string): Promise<void> {
  await eventually(`${peer} is ${state}`, async () => {
    await fetch(sidecar.url).then((response) => response.text())
    const peers = await sidecar.json<Record<string, PeerStatus>>('/status/http/upstreams/demo/peers/')
    return peers[peer]?.state === state
  })
}

test(
  'a peer that fails and recovers is shown so within two seconds, with the reason',
  timed(async () => {
    await using peers = new Backends()
    const good = await peers.add({ body: 'good' })
    const bad = await peers.add({ body: 'bad' })
    const more = ['', 'max_fails=2 fail_timeout=1s']
    await using sidecar = await start(config([good, bad], more))
    const watched = await visit(browser, sidecar.admin)
    const row = watched.row(bad.address)
    await row.getByText('up', { exact: true }).waitFor()
    bad.script = { status: 503 }
    await becomes(sidecar, bad.address, 'unavailable')
    await row.getByText('unavailable', { exact: true }).waitFor(soon)
    await row.getByText(/2 of 2 failures/).waitFor(soon)
    await row.getByText(/http_503/).waitFor(soon)
    await watched.page.locator('.states').getByText('1 unavailable').waitFor(soon)
    // What changed stands among the attempts too, and is said to who does not see it.
    await watched.page.locator('.change', { hasText: bad.address }).getByText('unavailable').waitFor(soon)
    assert.match(
      (await watched.page.getByRole('status').first().textContent()) ?? '',
      /is unavailable, was up/,
    )
    assert.equal(await watched.page.title(), '(1) evenkeel')

    bad.script = { body: 'bad' }
    await becomes(sidecar, bad.address, 'up')
    await row.getByText('up', { exact: true }).waitFor(soon)
    assert.equal(await row.getByText('unavailable', { exact: true }).count(), 0)
    clean(watched)
  }),
)

test(
  'a peer that a reload sets down, adds or removes is shown so within two seconds',
  timed(async () => {
    await using peers = new Backends()
    const one = await peers.add({ body: 'one' })
    const two = await peers.add({ body: 'two' })
    const three = await peers.add({ body: 'three' })
    await using sidecar = await start(config([one, two]))
    const watched = await visit(browser, sidecar.admin)
    const { page } = watched
    const row = watched.row(two.address)
    await row.getByText('up', { exact: true }).waitFor()
    await sidecar.reload(config([one, two], ['', 'down']))
    await row.getByText('down', { exact: true }).waitFor(soon)
    await page
      .locator('#facts')
      .getByText(/^2, loaded/)
      .waitFor(soon)
    await sidecar.reload(config([one, two]))
    await row.getByText('up', { exact: true }).waitFor(soon)
    await sidecar.reload(config([one, three]))
    await watched.row(three.address).waitFor(soon)
    await row.waitFor({ state: 'detached', ...soon })

    await sidecar.rewrite('http { nonsense; }')
    sidecar.signal('SIGHUP')
    await sidecar.logged(/unknown directive "nonsense"/)
    await page.locator('.banner', { hasText: 'unknown directive "nonsense"' }).waitFor(soon)
    await sidecar.reload(config([one, three]))
    await page.locator('.banner').waitFor({ state: 'detached', ...soon })
    clean(watched)
  }),
)

test(
  'a peer that probes find unhealthy is shown so, with what the last one saw, until they pass again',
  timed(async () => {
    await using good = await backend({ body: 'good' })
    await using bad = await backend({ body: 'bad' })
    const probe = 'upstream_probe health uri=/health interval=200ms fails=2 passes=1;'
    await using sidecar = await start(config([good, bad], ['', 'max_fails=0'], probe))
    const watched = await visit(browser, sidecar.admin)
    const row = watched.row(bad.address)
    await row.locator('[data-look="passed"]').waitFor()
    bad.script = { status: 503 }
    await becomes(sidecar, bad.address, 'unhealthy')
    await row.getByText('unhealthy', { exact: true }).waitFor(soon)
    await row
      .locator('[data-look="failed"]')
      .getByText(/health \d+ s ago: .*503/)
      .waitFor(soon)
    // Its details say more of it.
    await row.getByRole('button', { name: bad.address, exact: true }).click()
    const details = watched.page.locator('.details')
    await details.getByText(/\d+ failed in a row, 2 take it out/).waitFor(soon)
    await details.getByText(/Probes found that it does not work/).waitFor(soon)
    bad.script = { body: 'bad' }
    await becomes(sidecar, bad.address, 'up')
    await row.getByText('up', { exact: true }).waitFor(soon)
    await row.locator('[data-look="passed"]').waitFor(soon)
    clean(watched)
  }),
)

test(
  'a peer that stops answering is shown so, and those that are idle or send a long answer are not',
  timed(async () => {
    await using peers = new Backends()
    const fine = await peers.add({ body: 'fine' })
    const stuck = await peers.add({ body: 'stuck' })
    await using sidecar = await start(config([fine, stuck], ['', 'max_fails=0']))
    for (let i = 0; i < 4; i++) await fetch(sidecar.url).then((response) => response.text())
    const watched = await visit(browser, sidecar.admin)
    const { page } = watched
    await watched.row(stuck.address).getByText('up', { exact: true }).waitFor()
    stuck.script = () => new Promise(() => {})
    fine.script = async (exchange) => {
      await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun')
      await new Promise(() => {})
    }
    const leave = new AbortController()
    const asked = Array.from({ length: 4 }, () =>
      fetch(sidecar.url, { signal: leave.signal }).catch(() => {}),
    )
    const found = page.locator('tr.peer .waits:visible')
    await watched
      .row(stuck.address)
      .getByText(/^2 wait, silent for \d+ s$/)
      .waitFor({ timeout: 6000 })
    assert.equal(await found.count(), 1, 'only the peer that is stuck')
    await page.locator('.states').getByText('1 peer silent or slow, 2 waiting').waitFor(soon)
    await page.getByRole('button', { name: 'Trouble 1' }).click()
    await watched.row(fine.address).waitFor({ state: 'detached', ...soon })
    await watched.row(stuck.address).waitFor(soon)
    assert.equal(await page.title(), '(1) evenkeel')
    leave.abort()
    await Promise.all(asked)
    await page.getByText(/^No trouble: /).waitFor({ timeout: 4000 })
    clean(watched)
  }),
)
