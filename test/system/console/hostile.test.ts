import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { backend } from '../../support/backend.ts'
import { clean, soon, visit } from '../../support/browser.ts'
import { launchChromium } from '../../support/chromium.ts'
import { dial } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/sidecar.ts'

let browser: Browser
before(async () => {
  browser = await launchChromium()
})
after(() => browser.close())

const markup = '<img src=x onerror=alert(1)>'

test('what peers, clients and configurations write is text, whatever it looks like', async (t) => {
  const agentPort = await freePort()
  const agent = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(`${markup}<script>alert(2)</script>\n`)
  })
  await new Promise<void>((resolve) => agent.listen(agentPort, '127.0.0.1', resolve))
  t.after(() => agent.close())
  await using peer = await backend({ body: 'ok' })
  const group = 'g<b>bold&amp;"'
  await using sidecar = await start(`http {
    access_log off;
    upstream demo { zone x 1m; server ${peer.address}; }
    upstream '${group}' { zone y 1m; server 'unix:/tmp/${markup}'; }
    server {
      listen 127.0.0.1:PORT;
      location / {
        proxy_pass http://demo;
        proxy_next_upstream off;
        upstream_probe agent<i>x type=agent port=${agentPort} interval=200ms;
      }
    }
  }`)
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const client = await dial(sidecar.port)
  for (let i = 0; i < 4; i++) await client.ask(`/<script>alert(3)</script>/${markup.replaceAll(' ', '%20')}`)

  await page.getByRole('heading', { name: group }).waitFor(soon)
  const row = watched.row(`unix:/tmp/${markup}`)
  await row.waitFor(soon)
  const probed = watched.row(peer.address)
  await probed.getByText(/agent<i>x/).waitFor(soon)
  await probed.getByRole('button').click()
  const details = page.locator('.details')
  await details.getByText(`agent says "${markup}<script>alert(2)</script>"`).waitFor(soon)
  const attempt = page.locator('.attempt', { hasText: '<script>alert(3)</script>' }).first()
  await attempt.waitFor(soon)
  await attempt.click()
  await page.getByRole('button', { name: 'Why there? demo' }).click()
  await page.locator('.explanation tbody tr').first().waitFor(soon)
  await page.locator('.explanation summary').click()
  await page.goto(`${sidecar.admin}/#config`)
  await page.locator('.code li', { hasText: markup }).first().waitFor(soon)
  // None of it has become an element.
  assert.equal(
    await page.locator('img:not(.brand img), b > b, script:not([src]), u, i:not(:empty)').count(),
    0,
  )
  clean(watched)
})

test('a text that stands for markup does not pass into the page by any way that the browser knows', async () => {
  await using peer = await backend({ body: 'ok' })
  await using sidecar = await start(
    `http { upstream u { server ${peer.address}; } server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } } }`,
  )
  const watched = await visit(browser, sidecar.admin)
  const tries = [
    'document.body.innerHTML = "<p>x</p>"',
    'document.write("<p>x</p>")',
    'document.body.insertAdjacentHTML("beforeend", "<p>x</p>")',
  ]
  for (const code of tries) await assert.rejects(watched.page.evaluate(code), /TrustedHTML/, code)
  const elsewhere = watched.page.evaluate('fetch("http://127.0.0.1:9/").then(() => "sent", () => "kept")')
  assert.equal(await elsewhere, 'kept')
})
