import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { backend } from '../../support/backend.ts'
import { browser, clean, visit } from '../../support/browser.ts'
import { start } from '../../support/sidecar.ts'

let chrome: Browser
before(async () => {
  chrome = await browser()
})
after(() => chrome.close())

/** How soon the page has to show a change, milliseconds. */
const soon = { timeout: 2000 }

test('a peer that a reload sets down is shown so within two seconds', async () => {
  await using one = await backend()
  await using two = await backend()
  const text = (more: string) => `http {
    upstream demo { zone demo 1m; server ${one.address}; server ${two.address}${more}; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://demo; } }
  }`
  await using sidecar = await start(text(''))
  const watched = await visit(chrome, sidecar.admin)
  const row = watched.page.getByRole('row', { name: two.address })
  await row.getByText('up', { exact: true }).waitFor()
  await sidecar.reload(text(' down'))
  await row.getByText('down', { exact: true }).waitFor(soon)
  await sidecar.reload(text(''))
  await row.getByText('up', { exact: true }).waitFor(soon)
  clean(watched)
})
