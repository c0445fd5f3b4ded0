import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { prepare, type Running } from '../../sidecar/build/running.ts'
import { loadText } from '../../sidecar/config/load.ts'

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

async function next(old: Running | undefined): Promise<Running> {
  const loaded = loadText(text, 'test.conf', 'nginx')
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
