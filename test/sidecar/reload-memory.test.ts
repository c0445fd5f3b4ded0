import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Tally } from '../../feedback/tally.ts'
import { prepare, type Running } from '../../sidecar/build/running.ts'
import { loadText } from '../../sidecar/config/load.ts'
import { listensOf } from '../../sidecar/listens.ts'
import { Service } from '../../sidecar/service.ts'
import { ask } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { facts } from './admin/facts.ts'

setFlagsFromString('--expose-gc')
// The collector, which has no other name without a flag of the command line.
const collect = runInNewContext('gc') as () => void

const text = `
  http {
    access_log off;
    log_format own '$remote_addr $upstream_addr';
    map $uri $kind { default a; ~^/(b) $1; }
    upstream u { zone u 64k; least_time header; server 127.0.0.1:1; server 127.0.0.1:2; }
    server {
      listen 127.0.0.1:1;
      status_zone front;
      location / { proxy_pass http://u/x/; error_page 502 = @other; add_header X-Kind $kind; }
      location /v/ { proxy_pass http://$kind; proxy_redirect ~^(.*)$ $1; status_zone v; }
      location @other { return 200 "$kind"; }
    }
  }`

async function next(old: Running | undefined, port = 1): Promise<Running> {
  const loaded = loadText(
    text.replace('listen 127.0.0.1:1', `listen 127.0.0.1:${port}`),
    'test.conf',
    'nginx',
  )
  return (await prepare(loaded, { prefix: '/tmp', version: '0' }, old)).commit()
}

test('a configuration that was replaced is forgotten', async () => {
  const replaced: WeakRef<object>[] = []
  let running = await next(undefined)
  for (let i = 0; i < 5; i++) {
    replaced.push(new WeakRef(running), new WeakRef(running.router))
    running = await next(running)
  }
  // A reference is kept to the end of the turn in which it was made.
  for (let i = 0; i < 3; i++) {
    await turn()
    collect()
  }
  assert.equal(replaced.filter((each) => each.deref() !== undefined).length, 0)
  assert.equal(running.groups.size, 1)
})

/** Serves by a configuration, asks once, and goes on to one with another address. */
async function move(service: Service, running: Running, replaced: WeakRef<object>[]): Promise<Running> {
  replaced.push(new WeakRef(running), new WeakRef(running.router))
  const { address } = running.listens[0]!
  assert.ok(address.kind === 'tcp')
  // Nobody listens where the group's peers would be.
  assert.equal((await ask(address.port, '/v/')).status, 502)
  const following = await next(running, await freePort())
  await service.listen(listensOf(following))
  service.use(following)
  return following
}

test('an address that is listened on no more is forgotten with its routes once its last connection has ended', async () => {
  const replaced: WeakRef<object>[] = []
  const sharing = { threads: 1, thread: 0, tally: new Tally() }
  const serve = async () => {
    let running = await next(undefined, await freePort())
    const service = new Service(running, facts({ groups: [] }), sharing)
    await service.listen(listensOf(running))
    for (let i = 0; i < 3; i++) running = await move(service, running, replaced)
    return service
  }
  const service = await serve()
  try {
    await until(async () => {
      await turn()
      collect()
      return replaced.every((each) => each.deref() === undefined)
    })
  } finally {
    service.destroy()
  }
})
