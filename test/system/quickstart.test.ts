import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freePort } from '../support/free-port.ts'
import { eventually } from '../support/invariants.ts'

const script = new URL('../../sidecar/quickstart.ts', import.meta.url).pathname
const original = new URL('../../sidecar/quickstart.conf', import.meta.url).pathname

/** The quick start on free ports: the file as it is but for its ports. */
async function quickstart(
  t: TestContext,
  taken: Record<string, number> = {},
  env: Record<string, string> = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-quickstart-'))
  t.after(() => rm(folder, { recursive: true }))
  const ports: Record<string, number> = {}
  let text = readFileSync(original, 'utf8')
  for (const port of new Set(text.match(/(?<=127\.0\.0\.1:)\d+/g))) {
    ports[port] = taken[port] ?? (await freePort())
    text = text.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${ports[port]}`)
  }
  const file = join(folder, 'quickstart.conf')
  writeFileSync(file, text)
  const child = spawn(process.execPath, [script, file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  // Whatever it has started as well: what stays behind would keep its output open, and this file from ending.
  t.after(() => endGroup(child.pid!))
  return { child, ports, file, output: collect(child) }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of it has ended.
  }
}

function collect(child: ChildProcess): { text: string } {
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output.text += text
    })
  }
  return output
}

test('the quick start serves, says what to try, and Ctrl-C stops all of it', async (t) => {
  const { child, ports, output } = await quickstart(t)
  await eventually('started', () => output.text.includes('Ctrl-C stops everything.'), 20_000)
  const proxy = `http://127.0.0.1:${ports['8080']}`
  const admin = `http://127.0.0.1:${ports['9900']}`
  const [first = ''] = output.text.slice(output.text.indexOf('Open ')).split('\n')
  assert.equal(first, `Open ${admin}/ to watch.`)
  assert.match(output.text, new RegExp(`5 requests a second go to ${proxy}/demo/`))
  assert.match(output.text, new RegExp(`curl -i ${proxy}/`))
  assert.match(output.text, new RegExp(`${admin}/explain/demo`))
  for (const name of ['fast', 'slow', 'flaky']) assert.ok(output.text.includes(name))

  const answers = new Map<string, number>()
  const times = (name: string) => answers.get(name) ?? 0
  // The first answers of a program that has only just begun are no measure of its peers.
  for (let i = 0; i < 60 || (times('fast') <= times('slow') && i < 1000); i++) {
    const response = await fetch(`${proxy}/`)
    assert.equal(response.status, 200, 'failures of a peer are not the client’s')
    assert.notEqual(response.headers.get('x-evenkeel'), null)
    const [name = ''] = (await response.text()).split(' ')
    answers.set(name, (answers.get(name) ?? 0) + 1)
  }
  assert.ok(times('fast') > times('slow'), 'the fast peer answers more')

  // What it says to try does answer.
  for (const [, url = ''] of output.text.matchAll(/curl (?:-\w+ )?'?(http[^'\s;]+)/g)) {
    const response = await fetch(url)
    assert.equal(response.status, 200, url)
    await response.text()
  }

  // A terminal signals the whole group.
  process.kill(-child.pid!, 'SIGINT')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0, output.text)
  for (const port of Object.values(ports)) await assert.rejects(fetch(`http://127.0.0.1:${port}/`))
})

test('the quick start opens on the live page, with something to see in it and nothing in the log', async (t) => {
  const { ports, output } = await quickstart(t, {}, { EVENKEEL_DEMO_RATE: '50' })
  await eventually('started', () => output.text.includes('Ctrl-C stops everything.'), 20_000)
  const admin = `http://127.0.0.1:${ports['9900']}`
  const page = await fetch(`${admin}/`, { headers: { accept: 'text/html' } })
  assert.match(await page.text(), /<script type="module" src="console\/main\.js">/)
  await eventually('requests are made', async () => {
    const requests = await fetch(`${admin}/status/http/upstreams/demo/evenkeel/requests`)
    return Number(await requests.text()) > 20
  })
  assert.doesNotMatch(output.text, /\/demo\/items/)
})

test('nothing is sent where nothing is wanted, and what is no number is said', async (t) => {
  const { ports, output } = await quickstart(t, {}, { EVENKEEL_DEMO_RATE: '0' })
  await eventually('started', () => output.text.includes('Ctrl-C stops everything.'), 20_000)
  assert.doesNotMatch(output.text, /requests a second/)
  const requests = await fetch(
    `http://127.0.0.1:${ports['9900']}/status/http/upstreams/demo/evenkeel/requests`,
  )
  assert.equal(Number(await requests.text()), 0)
  const wrong = await quickstart(t, {}, { EVENKEEL_DEMO_RATE: 'many' })
  const [code] = await once(wrong.child, 'exit')
  assert.equal(code, 1)
  await eventually('said', () => wrong.output.text.includes('EVENKEEL_DEMO_RATE is "many"'))
})

test('a signal to the quick start alone drains and stops everything as well', async (t) => {
  const { child, ports, output } = await quickstart(t)
  await eventually('started', () => output.text.includes('Ctrl-C stops everything.'), 20_000)
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0, output.text)
  for (const port of Object.values(ports)) await assert.rejects(fetch(`http://127.0.0.1:${port}/`))
})

for (const [what, port] of [
  ['a peer', '8082'],
  ['the proxy', '8080'],
  ['the admin server', '9900'],
] as const) {
  test(`a port of ${what} that is taken is named, with what to do`, async (t) => {
    const other = createServer()
    const taken = await freePort()
    await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve))
    t.after(() => other.close())
    const { child, output, file } = await quickstart(t, { [port]: taken })
    const [code] = await once(child, 'exit')
    assert.equal(code, 1)
    await eventually('said', () => output.text.includes('quick start: if a port is taken'))
    assert.match(output.text, new RegExp(`127\\.0\\.0\\.1:${taken}.*98: Address already in use`))
    assert.ok(output.text.includes(`change the port in ${file}`))
  })
}
