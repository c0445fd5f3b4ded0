import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type Backend, Backends } from '../../support/backend.ts'
import { clean, picture, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { ask, dial } from '../../support/client.ts'
import { type DnsServer, dnsServer } from '../../support/dns-server.ts'
import { excess, faint, misreferred, nameless } from '../../support/page-checks.js'
import { start } from '../../support/sidecar.ts'
import { echoPeer, type TcpPeer } from '../../support/tcp-peer.ts'

let browser: Browser
let dns: DnsServer
let echo: TcpPeer
const peers = new Backends()
/** Takes its time, so that others wait for it. */
let slow: Backend
let ready: Backend
before(async () => {
  slow = await peers.add({ body: 'slow', after: 1200 })
  ready = await peers.add({ body: 'ready' })
  echo = await echoPeer()
  dns = await dnsServer()
  await dns.has('app.internal', ['127.0.0.1'])
  browser = await launchChromium()
})
after(async () => {
  await browser.close()
  await dns.stop()
  await echo[Symbol.asyncDispose]()
  await peers[Symbol.asyncDispose]()
})

/** Nothing sticks out of the page, however narrow it is. */
async function fitsNarrow(page: Page): Promise<void> {
  const before = page.viewportSize()!
  for (const size of [{ width: 390, height: 844 }, { width: 800, height: 900 }, before]) {
    await page.setViewportSize(size)
    assert.equal(await page.evaluate(excess), 0, `${size.width} wide`)
  }
}

test('sessions of stream stand beside requests, with their own figures, columns and details', async () => {
  await using sidecar = await start(`
    http {
      access_log off;
      upstream app { zone app 64k; server ${ready.address}; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://app; } }
    }
    stream {
      upstream app { zone sapp 64k; least_time connect; server ${echo.address}; }
      server { listen 127.0.0.1:PORT2; proxy_pass app; }
    }`)
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const group = page
    .locator('section.group')
    .filter({ has: page.getByRole('heading', { name: 'stream/app' }) })
  await group.waitFor(soon)
  using client = await dial(sidecar.ports['PORT2']!)
  await client.write('hello')
  await client.inbox.take(5)
  const figures = group.locator('.figures')
  assert.deepEqual(await figures.locator('dt').allTextContents(), [
    'sessions/s',
    'open',
    'errors/s',
    'connect',
    'first byte',
  ])
  await figures.locator('div', { hasText: 'open' }).getByText('1', { exact: true }).waitFor(soon)
  await group.getByText('least_time connect').waitFor(soon)
  assert.deepEqual(
    await group
      .locator('.peers thead th button')
      .allTextContents()
      .then((texts) => texts.slice(4, 6)),
    ['Sessions', 'First byte'],
  )
  // What is open and quiet is as it should be.
  assert.equal(await page.getByText('silent or slow').count(), 0)
  await page.getByText(/requests\/s, .* sessions\/s/).waitFor(soon)

  await group.getByRole('button', { name: echo.address, exact: true }).click()
  const details = group.locator('.details-row')
  await details.getByText('Connecting, average').waitFor(soon)
  await details.getByText('First byte, average').waitFor(soon)
  await details.getByText('Last picked').waitFor(soon)
  for (const word of ['Header, average', 'Answers', 'on kept ones'])
    assert.equal(await details.getByText(word).count(), 0, word)

  client.end()
  const line = page.locator('#rail li.attempt').first()
  await line.getByText(`TCP 127.0.0.1:${sidecar.ports['PORT2']}`).waitFor(soon)
  await line.click()
  await page.getByText('The session ended in order.').waitFor(soon)
  await group.getByRole('button', { name: /Why there/ }).click()
  await picture(page, 'streams')
  await group.getByText('0 retries in 1 session, 0 waiting').waitFor(soon)
  await picture(page, 'streams')
  await fitsNarrow(page)
  for (const check of [faint, nameless, misreferred]) assert.deepEqual(await page.evaluate(check), [])
  clean(watched)
})

test('who waits for a peer, what became of sessions, which list comes first, and names are told in a line each', async () => {
  await using sidecar = await start(`
    http {
      access_log off;
      resolver ${dns.address} valid=1s;
      upstream app { zone app 64k; server ${slow.address} max_conns=1; queue 1 timeout=30s; }
      upstream shop {
        zone shop 64k;
        sticky learn zone=visits:64k create=$arg_visit lookup=$arg_visit;
        server ${ready.address};
        server app.internal:${ready.port} resolve;
      }
      upstream moved {
        zone moved 64k;
        server ${slow.address} down;
        server ${ready.address} backup;
        backup_switch permanent=10m;
      }
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://app; }
        location /shop { proxy_pass http://shop; }
        location /moved { proxy_pass http://moved; }
      }
    }`)
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const note = (group: string, title: string) =>
    page.locator(`#group-${group} .note`).filter({ has: page.locator('b', { hasText: title }) })
  await note('app', 'Queue').getByText('0 waiting').waitFor(soon)
  await note('shop', 'Sessions').getByText('0 new, 0 hits, 0 misses').waitFor(soon)
  await note('moved', 'Lists').getByText('the primaries come first').waitFor(soon)
  await note('shop', 'Names').getByText('app.internal: 1 address, heard').waitFor(soon)

  const waiting = [ask(sidecar.port, '/'), ask(sidecar.port, '/'), ask(sidecar.port, '/')]
  await note('app', 'Queue')
    .getByText(/1 waiting, .*1 found it full/)
    .waitFor(soon)
  assert.equal(await note('app', 'Queue').getAttribute('data-trouble'), 'yes')
  for (let i = 0; i < 3; i++) await ask(sidecar.port, '/shop?visit=one')
  await note('shop', 'Sessions').getByText('1 new, 2 hits, 0 misses').waitFor(soon)
  await note('shop', 'Sessions')
    .getByText(/1 of [\d,]+ known/)
    .waitFor(soon)
  await ask(sidecar.port, '/moved')
  await note('moved', 'Lists')
    .getByText(/the backups come first, the primaries are tried again in 9 min/)
    .waitFor(soon)
  await page
    .locator('#group-moved')
    .getByRole('button', { name: /Why there/ })
    .click()
  const chances = page.locator('#group-moved .explanation tbody tr')
  await chances.filter({ hasText: ready.address }).getByText('100 %').waitFor(soon)

  await dns.instead('app.internal', { code: 'SERVFAIL' })
  await note('shop', 'Names')
    .getByText(/app\.internal: 1 address, heard .*; /)
    .waitFor({ timeout: 8000 })
  await picture(page, 'ways')
  await fitsNarrow(page)
  for (const check of [faint, nameless, misreferred]) assert.deepEqual(await page.evaluate(check), [])
  const answers = await Promise.all(waiting)
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 502])
  await note('app', 'Queue').getByText('0 waiting').waitFor(soon)
  clean(watched)
})
