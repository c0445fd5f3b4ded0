import assert from 'node:assert/strict'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { Client, dial, webSocket } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { readBody } from '../../support/message.ts'

/* Signals in the middle of everything that can be in progress. */

const upload = Buffer.alloc(2 << 20, 'u')
const download = Buffer.alloc(2 << 20, 'd')

/** Peers of a scene: what they have begun they end once they are told to. */
function script(goOn: Promise<void>) {
  return async (x: Exchange): Promise<void> => {
    if (x.target === '/stalled') {
      await Promise.race([goOn, x.gone])
      return x.reply({ body: 'late' })
    }
    if (x.target === '/upload') return x.reply({ body: String((await x.body()).body.length) })
    if (x.target === '/download') {
      await x.send(`HTTP/1.1 200 OK\r\nContent-Length: ${download.length}\r\n\r\n`)
      await x.send(download.subarray(0, 100_000))
      await Promise.race([goOn, x.gone])
      x.done()
      return x.send(download.subarray(100_000))
    }
    if (x.target === '/ws') {
      await x.upgrade()
      await Promise.race([goOn, x.gone])
      x.done()
      await x.send('through')
      x.end()
      return
    }
    if (x.target === '/backoff') return x.reply({ status: 503, body: 'busy' })
    await x.reply({ body: 'ok' })
  }
}

interface Scene {
  readonly peer: Backend
  readonly front: Lab
  /** Lets everything go on to its end. */
  goOn(): void
  /** How each ended: `whole`, or `cut`. */
  readonly ends: Promise<Record<string, string>>
}

/** Begins one of each kind, and waits until each is in its middle. */
async function begin(stack: AsyncDisposableStack, seconds = 5): Promise<Scene> {
  const gate = Promise.withResolvers<void>()
  const peer = stack.use(await backend(script(gate.promise), { host: '0.0.0.0' }))
  const at = (n: number) => `127.0.9.${n}:${peer.port}`
  const front = stack.use(
    await lab(
      `upstream up { server ${at(1)} max_fails=1; }
       upstream busy { ${[1, 2, 3].map((n) => `server ${at(n)} max_fails=0;`).join(' ')} }
       client_max_body_size 0;
       server { listen 127.0.0.1:PORT;
         location / { proxy_pass http://up; }
         location /backoff { proxy_pass http://busy; proxy_next_upstream http_503; proxy_next_upstream_budget off;
           proxy_next_upstream_backoff 600s 600s; } }`,
      [],
      { main: `drain_timeout ${seconds}s;` },
    ),
  )
  const clients: Record<string, Client> = {}
  for (const name of ['stalled', 'upload', 'download', 'backoff']) clients[name] = await dial(front.port)
  await clients['stalled']!.write(Client.bytes('/stalled'))
  await clients['download']!.write(Client.bytes('/download'))
  await clients['backoff']!.write(Client.bytes('/backoff'))
  await clients['upload']!.write(
    `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: ${upload.length}\r\n\r\n`,
  )
  await clients['upload']!.write(upload.subarray(0, upload.length / 2))
  const tunnel = await webSocket(front.port, '/ws')
  assert.equal(tunnel.status, 101)
  await eventually('each is in its middle', () => {
    const targets = peer.targets
    return (
      ['/stalled', '/download', '/upload', '/ws'].every((one) => targets.includes(one)) &&
      targets.filter((one) => one === '/backoff').length === 2
    )
  })
  const whole = async (name: string, text: string | Buffer) => {
    const reply = await clients[name]!.reply(name === 'upload' ? 'POST' : 'GET').catch(() => undefined)
    return [name, reply?.complete && reply.body.equals(Buffer.from(text as string)) ? 'whole' : 'cut']
  }
  const through = async () => {
    const { body } = await readBody(tunnel.client.inbox, 'close')
    tunnel.client.end()
    return ['tunnel', body.toString() === 'through' ? 'whole' : 'cut']
  }
  const ends = Promise.all([
    whole('stalled', 'late'),
    whole('upload', String(upload.length)),
    whole('download', download),
    through(),
  ]).then(Object.fromEntries)
  stack.defer(() => {
    for (const client of [...Object.values(clients), tunnel.client]) client.close()
  })
  const goOn = () => {
    gate.resolve()
    // What waits for the next try has no end of its own here.
    clients['backoff']!.close()
    void clients['upload']!.write(upload.subarray(upload.length / 2))
  }
  return { peer, front, goOn, ends }
}

const all = (how: string) => ({ stalled: how, upload: how, download: how, tunnel: how })

test('reloads and reopened logs in the middle of everything: all of it ends whole, with its records', async () => {
  await using stack = new AsyncDisposableStack()
  const { front, goOn, ends } = await begin(stack)
  const { sidecar } = front
  for (let i = 0; i < 3; i++) {
    renameSync(join(sidecar.folder, 'access.log'), join(sidecar.folder, `access.log.${i}`))
    sidecar.signal('SIGUSR1')
    await sidecar.reload()
  }
  goOn()
  assert.deepEqual(await ends, all('whole'))
  const log = join(sidecar.folder, 'access.log')
  await eventually('all have their records', () => readFileSync(log, 'latin1').split('\n').length === 6)
  const records = readFileSync(log, 'latin1')
  for (const target of ['/stalled', '/upload', '/download', '/ws'])
    assert.match(records, new RegExp(`^(?:200|101)\\|.*${target} `, 'm'))
  assert.match(records, /^499\|.*http_503.*\/backoff/m)
  for (const { health } of Object.values(await front.peers('up'))) assert.equal(health.fails, 0)
  await front.idle()
})

test('a drain in the middle of everything waits for all of it, and ends well', async () => {
  await using stack = new AsyncDisposableStack()
  const { front, goOn, ends } = await begin(stack)
  front.sidecar.signal('SIGTERM')
  await front.sidecar.logged(/SIGTERM: draining/)
  await eventually('not ready', async () => (await fetch(`${front.sidecar.admin}/readyz`)).status === 503)
  // Signals that a drain has no use for.
  front.sidecar.signal('SIGHUP')
  front.sidecar.signal('SIGUSR1')
  goOn()
  assert.deepEqual(await ends, all('whole'))
  assert.deepEqual(await front.sidecar.exited, { code: 0, signal: null })
  assert.match(front.sidecar.stderr, /drained, exiting/)
  assert.equal((await front.records()).length, 5)
})

test('a drain whose time is over cuts what is left, each with its record', async () => {
  await using stack = new AsyncDisposableStack()
  const { front, ends } = await begin(stack, 1)
  front.sidecar.signal('SIGTERM')
  assert.deepEqual(await ends, all('cut'))
  assert.deepEqual(await front.sidecar.exited, { code: 0, signal: null })
  assert.match(front.sidecar.stderr, /drain timeout, exiting/)
  assert.equal((await front.records()).length, 5)
})

test('INT in the middle of everything ends it at once', async () => {
  await using stack = new AsyncDisposableStack()
  const { peer, front, ends } = await begin(stack)
  const began = performance.now()
  front.sidecar.signal('SIGINT')
  assert.deepEqual(await front.sidecar.exited, { code: 0, signal: null })
  assert.ok(performance.now() - began < 2000)
  assert.deepEqual(await ends, all('cut'))
  await eventually('peers are let go', () => peer.open === 0)
})
