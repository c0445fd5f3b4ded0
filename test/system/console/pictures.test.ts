import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { type DemoPeer, startDemoPeer, tempers } from '../../../sidecar/simulate/demo-peers.ts'
import { clean, picture, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { excess } from '../../support/page-checks.js'
import { type Sidecar, start } from '../../support/sidecar.ts'

let browser: Browser
let sidecar: Sidecar
const peers: DemoPeer[] = []
let on = true
let load: Promise<void>

before(async () => {
  for (const temper of tempers) peers.push(await startDemoPeer('127.0.0.1', 0, temper))
  const [fast, slow, flaky] = peers.map(({ port }) => `127.0.0.1:${port}`)
  sidecar = await start(`http {
    access_log off;
    upstream demo {
      zone demo 1m; least_time last_byte;
      server ${fast} max_fails=3 fail_timeout=5s; server ${slow} max_conns=40; server ${flaky} max_fails=3 fail_timeout=5s;
      server 127.0.0.1:9 backup;
    }
    upstream checkout.production.svc.cluster.local {
      zone checkout 1m; split stable=80% canary=20%; shadow least_conn;
      server ${fast}; server ${slow}; server ${flaky} track=canary;
    }
    upstream nobody { zone nobody 64k; server 127.0.0.1:9 down; server 127.0.0.2:9; }
    server {
      listen 127.0.0.1:PORT;
      location / { proxy_pass http://demo; proxy_next_upstream error timeout http_503; upstream_probe alive type=tcp interval=1s; }
      location /checkout { proxy_pass http://checkout.production.svc.cluster.local; }
      location /nobody { proxy_pass http://nobody; }
    }
  }`)
  browser = await launchChromium()
  load = (async () => {
    for (let i = 0; on; i++) {
      const path = i % 9 === 8 ? '/nobody/here' : i % 3 === 1 ? '/checkout/basket' : `/items/${i % 50}`
      void fetch(sidecar.url + path).then(
        (response) => response.text(),
        () => {},
      )
      await wait(25)
    }
  })()
})
after(async () => {
  on = false
  await load
  await browser.close()
  await sidecar.stop()
  for (const peer of peers) await peer.close()
})

test('pictures at desk and at phone width, dark and light', async () => {
  const looks = [
    { width: 1440, height: 900, colorScheme: 'light' },
    { width: 1440, height: 900, colorScheme: 'dark' },
    { width: 390, height: 844, colorScheme: 'light' },
    { width: 390, height: 844, colorScheme: 'dark' },
  ] as const
  const visits = await Promise.all(
    looks.map(async ({ width, height, colorScheme }) => {
      const phone = width < 500 ? { isMobile: true, hasTouch: true, deviceScaleFactor: 2 } : {}
      return visit(browser, sidecar.admin, { viewport: { width, height }, colorScheme, ...phone })
    }),
  )
  await wait(6000)
  for (const [i, watched] of visits.entries()) {
    const { page } = watched
    const { width, colorScheme } = looks[i]!
    const name = `page-${width}-${colorScheme}`
    await picture(page, name)
    assert.ok((await page.evaluate(excess)) <= 0, `${name}: wider than the window`)
    await page.locator('.peer-name').nth(2).click()
    await page.getByRole('button', { name: 'Why there? demo' }).click()
    await page.locator('.explanation tbody tr').first().waitFor(soon)
    await wait(300)
    await picture(page, `${name}-details`)
    assert.ok((await page.evaluate(excess)) <= 0, `${name}: wider than the window with details`)
    for (const view of ['attempts', 'config'] as const) {
      await page.locator(`#views a[href="#${view}"]`).click()
      await wait(600)
      await picture(page, `${name}-${view}`, false)
      assert.ok((await page.evaluate(excess)) <= 0, `${name}: wider than the window with ${view}`)
    }
    clean(watched)
    await page.context().close()
  }
})
