import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { type DemoPeer, startDemoPeer, tempers } from '../../../sidecar/simulate/demo-peers.ts'
import { clean, picture, soon, visit, type Watched } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { excess, faint, focused, misreferred, nameless } from '../../support/page-checks.js'
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

const looks = [
  { width: 1440, height: 900, colorScheme: 'light' },
  { width: 1440, height: 900, colorScheme: 'dark' },
  { width: 390, height: 844, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
] as const

test('at desk and at phone width, dark and light, all has names, contrast, room and a visible focus', async () => {
  const visits = await Promise.all(
    looks.map(async ({ width, height, colorScheme }) => {
      const phone = width < 500 ? { isMobile: true, hasTouch: true, deviceScaleFactor: 2 } : {}
      return visit(browser, sidecar.admin, { viewport: { width, height }, colorScheme, ...phone })
    }),
  )
  // Something to see in the charts.
  await wait(4000)
  for (const [i, watched] of visits.entries()) {
    const { width, colorScheme } = looks[i]!
    await inspect(watched, `page-${width}-${colorScheme}`)
    clean(watched)
    await watched.page.context().close()
  }
})

/** Looks at all there is to see, and leaves pictures of it. */
async function inspect({ page }: Watched, name: string): Promise<void> {
  const look = async (view: string, whole = true) => {
    await picture(page, `${name}${view}`, whole)
    assert.deepEqual(await page.evaluate(faint), [], `${name}${view}: contrast`)
    assert.deepEqual(await page.evaluate(nameless), [], `${name}${view}: names`)
    assert.deepEqual(await page.evaluate(misreferred), [], `${name}${view}: ids`)
    assert.ok((await page.evaluate(excess)) <= 0, `${name}${view}: wider than the window`)
  }
  // The question itself finds what is faint.
  await page.evaluate(`{
    const text = document.createElement('em')
    text.append('faint')
    text.style.color = 'light-dark(#aaa, #555)'
    document.body.append(text)
  }`)
  assert.equal((await page.evaluate(faint)).length, 1)
  await page.evaluate("document.querySelector('em').remove()")

  await page.locator('.peer').first().waitFor()
  await look('')
  await page.locator('.peer-name').nth(2).click()
  await page.getByRole('button', { name: 'Why there? demo' }).click()
  await page.locator('.explanation tbody tr').first().waitFor({ timeout: 5000 })
  await look('-details')
  const unseen = []
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab')
    const { name, seen } = await page.evaluate(focused)
    if (!seen && !name.startsWith('BODY')) unseen.push(name)
  }
  assert.deepEqual(unseen, [])
  await page.locator('#views a[href="#attempts"]').click()
  await page.locator('.attempt').first().waitFor(soon)
  await look('-attempts', false)
  await page.locator('#views a[href="#config"]').click()
  await page.locator('.code li').first().waitFor(soon)
  await look('-config', false)
  await page.getByRole('button', { name: 'Keys and words' }).click()
  await look('-help', false)
}
