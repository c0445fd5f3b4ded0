import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type Backend, Backends } from '../../support/backend.ts'
import { clean, picture, soon, visit } from '../../support/browser.ts'
import { change } from '../../support/changing.ts'
import { launchChromium } from '../../support/chromium.ts'
import { excess, faint, focused, misreferred, nameless } from '../../support/page-checks.js'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

let browser: Browser
const peers = new Backends()
let a: Backend
let b: Backend
before(async () => {
  a = await peers.add({ body: 'a' })
  b = await peers.add({ body: 'b' })
  browser = await launchChromium()
})
after(async () => {
  await browser.close()
  await peers[Symbol.asyncDispose]()
})

const config = (more = '') => `
  ${more}
  http {
    access_log off;
    upstream demo { zone demo 1m; server ${a.address} weight=5; server ${b.address}; }
    upstream closed { least_time header; server ${a.address}; }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://demo; } location /c { proxy_pass http://closed; } }
  }`

/** Opens the details of a peer, where its controls are. */
async function controls(page: Page, peer: string, group = 'demo') {
  await page.locator(`#group-${group}`).getByRole('button', { name: peer, exact: true }).click()
  const found = page.getByRole('group', { name: `Change ${peer}` })
  await found.waitFor(soon)
  return found
}

/** What the program has of a peer. */
async function held(sidecar: Sidecar, peer: string) {
  const { peers } = await sidecar.json<{
    peers: { name: string; state: string; weight: number; max_conns: number }[]
  }>('/upstreams/demo')
  const { state, weight, max_conns } = peers.find(({ name }) => name === peer)!
  return { state, weight, max_conns }
}

test('a peer is drained, gets another weight and limit, and all of it is taken back', async () => {
  await using sidecar = await start(config())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const fields = await controls(page, a.address)
  await fields.getByRole('button', { name: 'Drain' }).click()
  await fields.getByText('done').waitFor(soon)
  await fields.getByRole('spinbutton', { name: 'Weight' }).fill('7')
  await fields.getByRole('button', { name: 'Set weight' }).click()
  await watched.row(a.address).getByText('weight 7, file: 5').waitFor(soon)
  await fields.getByRole('spinbutton', { name: 'Most connections' }).fill('9')
  await page.keyboard.press('Enter')
  const marks = watched
    .row(a.address)
    .getByText('set drain, file: up · weight 7, file: 5 · most connections 9, file: no limit')
  await marks.waitFor(soon)
  assert.deepEqual(await held(sidecar, a.address), { state: 'draining', weight: 7, max_conns: 9 })
  assert.equal(await fields.getByRole('button', { name: 'Drain' }).getAttribute('aria-pressed'), 'true')
  const list = page.locator('#group-demo .changes li')
  await list.getByText(`${a.address}: weight is 7; the file says 5`).waitFor(soon)
  await list.getByText('by 127.0.0.1').first().waitFor(soon)
  await picture(page, 'changes')
  assert.equal(await page.evaluate(excess), 0)
  for (const check of [faint, nameless, misreferred]) assert.deepEqual(await page.evaluate(check), [])
  await page.setViewportSize({ width: 390, height: 800 })
  assert.equal(await page.evaluate(excess), 0)
  await picture(page, 'changes-narrow')
  await page.setViewportSize({ width: 1440, height: 900 })

  await list.getByRole('button', { name: /^Take back: .* weight is 7/ }).click()
  await watched
    .row(a.address)
    .getByText('set drain, file: up · most connections 9', { exact: false })
    .waitFor(soon)
  await fields.getByRole('button', { name: 'Take back', exact: true }).click()
  await marks.waitFor({ state: 'hidden', ...soon })
  await page
    .locator('#group-demo .changes li')
    .first()
    .waitFor({ state: 'detached', ...soon })
  assert.deepEqual(await held(sidecar, a.address), { state: 'up', weight: 5, max_conns: 0 })
  clean(watched)
})

test('a server is added and removed again, after a question', async () => {
  await using sidecar = await start(config())
  const c = await peers.add({ body: 'c' })
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  await page.getByRole('button', { name: 'Add a server to demo' }).click()
  const dialog = page.getByRole('dialog', { name: 'Add a server to demo' })
  await dialog.getByRole('textbox', { name: 'Server' }).fill('127.0.0.1:0')
  await dialog.getByRole('button', { name: 'Add' }).click()
  await dialog.getByRole('alert').getByText('invalid port in upstream "127.0.0.1:0"').waitFor(soon)
  await picture(page, 'changes-add')
  await dialog.getByRole('textbox', { name: 'Server' }).fill(c.address)
  await dialog.getByRole('textbox', { name: 'Other parameters' }).fill('max_fails=3 down')
  await dialog.getByRole('spinbutton', { name: 'Weight' }).fill('2')
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached', ...soon })
  const row = watched.row(c.address)
  await row.getByText('added').waitFor(soon)
  assert.deepEqual(await held(sidecar, c.address), { state: 'down', weight: 2, max_conns: 0 })

  const fields = await controls(page, b.address)
  await fields.getByRole('button', { name: 'Remove…' }).click()
  const question = page.getByRole('dialog', { name: `Remove ${b.address} from demo?` })
  await page.keyboard.press('Enter')
  await question.waitFor({ state: 'detached', ...soon })
  await row.waitFor(soon)
  assert.equal((await held(sidecar, b.address)).state, 'up', 'Enter alone removes nobody')
  await fields.getByRole('button', { name: 'Remove…' }).click()
  await question.getByRole('button', { name: 'Remove' }).click()
  await watched.row(b.address).waitFor({ state: 'detached', ...soon })
  await page.locator('#group-demo .changes li', { hasText: `${b.address} is removed` }).waitFor(soon)
  await page.locator('#group-demo').getByRole('button', { name: 'Take all back…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click()
  await watched.row(b.address).waitFor(soon)
  await row.waitFor({ state: 'detached', ...soon })
  assert.equal(await page.getByRole('button', { name: 'Add a server to closed' }).isVisible(), false)
  // A browser notes every answer that is none of success.
  assert.deepEqual(
    watched.faults.filter((fault) => !fault.includes('422')),
    [],
  )
})

test('what the program refuses is shown in its words', async () => {
  await using sidecar = await start(config())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const fields = await controls(page, a.address, 'closed')
  assert.equal(await fields.getByRole('button', { name: 'Remove…' }).isVisible(), false)
  await fields.getByRole('spinbutton', { name: 'Weight' }).fill('2')
  await page.keyboard.press('Enter')
  await fields.getByText('balancing method does not support parameter "weight=2"').waitFor(soon)
  // A browser notes any answer that is none of success.
  assert.deepEqual(watched.faults.length, 1)
  // What is written there is let be, and the details stay.
  await fields.getByRole('spinbutton', { name: 'Weight' }).press('Escape')
  const weight = fields.getByRole('spinbutton', { name: 'Weight' })
  await until(async () => (await weight.inputValue()) === '1')
  await fields.waitFor(soon)
})

test('a token is asked for once, is kept in memory alone, and a wrong one is said to be so', async () => {
  await using sidecar = await start(config())
  writeFileSync(join(sidecar.folder, 'token'), 'secret\n')
  await sidecar.reload(config('admin_token_file token;'))
  const { page, row } = await visit(browser, sidecar.admin)
  const fields = await controls(page, a.address)
  const dialog = page.getByRole('dialog', { name: 'A token is needed' })
  await fields.getByRole('button', { name: 'Down' }).click()
  await dialog.waitFor(soon)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached', ...soon })
  assert.equal((await held(sidecar, a.address)).state, 'up')

  await fields.getByRole('button', { name: 'Down' }).click()
  await dialog.waitFor(soon)
  await page.keyboard.type('wrong')
  await page.keyboard.press('Enter')
  await dialog.getByText('That is not the token.').waitFor(soon)
  await picture(page, 'changes-token')
  await page.keyboard.type('secret')
  await page.keyboard.press('Enter')
  await fields.getByText('done').waitFor(soon)
  await row(a.address).first().getByText('set down, file: up').waitFor(soon)
  await fields.getByRole('button', { name: 'Drain' }).click()
  await row(a.address).first().getByText('set drain, file: up').waitFor(soon)
  const stored = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  )
  assert.doesNotMatch(String(stored), /secret/)
  await page.reload()
  await (await controls(page, a.address)).getByRole('button', { name: 'Up' }).click()
  await dialog.waitFor(soon)
})

test('what others change is shown within a second, in the configuration too, and is text', async () => {
  await using sidecar = await start(config())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  await watched.row(b.address).waitFor(soon)
  await page.goto(`${sidecar.admin}/#config`)
  await page.locator('.code li', { hasText: 'upstreams' }).first().waitFor(soon)
  const server = 'unix:/tmp/<img src=x onerror=alert(1)>'
  assert.equal((await change(sidecar, 'POST', 'demo/peers', { server })).status, 200)
  await page.locator('.code li', { hasText: `value: ${server}` }).waitFor(soon)
  await page.goto(`${sidecar.admin}/#groups`)
  await watched.row(server).getByText('added').waitFor(soon)
  await page.locator('#group-demo .changes li', { hasText: `${server} is added` }).waitFor(soon)
  assert.equal(await page.locator('img:not(.brand img)').count(), 0)
  clean(watched)
})

test('all of it can be done with the keyboard, and nothing is changed by a key alone', async () => {
  await using sidecar = await start(config())
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const { keyboard } = page
  await watched.row(a.address).first().waitFor(soon)
  await keyboard.press('j')
  await keyboard.press('Enter')
  const fields = page.getByRole('group', { name: `Change ${a.address}` })
  await fields.waitFor(soon)
  const focus = async () => (await page.evaluate(focused)).name
  const tabTo = async (wanted: RegExp) => {
    for (let i = 0; i < 60; i += 1) {
      if (wanted.test(await focus())) return
      await keyboard.press('Tab')
    }
    assert.fail(`the focus does not come to ${wanted}`)
  }
  await tabTo(/BUTTON Drain/)
  assert.equal((await held(sidecar, a.address)).state, 'up')
  await keyboard.press('Space')
  await watched.row(a.address).first().getByText('set drain, file: up').waitFor(soon)
  await tabTo(/BUTTON Remove/)
  await keyboard.press('Enter')
  const question = page.getByRole('dialog', { name: `Remove ${a.address} from demo?` })
  await question.waitFor(soon)
  await keyboard.press('Escape')
  await question.waitFor({ state: 'detached', ...soon })
  assert.match(await focus(), /BUTTON Remove/, 'the focus is where it was')
  await tabTo(/Take back: /)
  await keyboard.press('Enter')
  await watched
    .row(a.address)
    .first()
    .getByText('set drain')
    .waitFor({ state: 'hidden', ...soon })
  clean(watched)
})

test('all addresses of a name are changed together where that is wanted', async () => {
  const port = Number(a.address.split(':')[1])
  await using sidecar = await start(config().replace(a.address, `localhost:${port}`))
  const watched = await visit(browser, sidecar.admin)
  const { page } = watched
  const fields = await controls(page, a.address)
  await fields.getByRole('checkbox', { name: `all addresses of localhost:${port}` }).check()
  await fields.getByRole('button', { name: 'Drain' }).click()
  const all = `all of localhost:${port}: state is drain; the file says up`
  await page.locator('#group-demo .changes li', { hasText: all }).waitFor(soon)
  await watched.row(a.address).first().getByText('set drain, file: up').waitFor(soon)
  await fields.getByRole('button', { name: 'Take back', exact: true }).click()
  await page
    .locator('#group-demo .changes li')
    .first()
    .waitFor({ state: 'detached', ...soon })
  clean(watched)
})
