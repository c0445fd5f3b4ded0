import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkListenHosts } from '../../../sidecar/build/listen-hosts.ts'
import { PartError } from '../../../sidecar/build/place.ts'

test('a host that is not known is said with the line that it stands in', async () => {
  const wrong = { address: 'no.such.host.invalid:8000-8001' }
  const model = { http: { servers: [{ listen: [{ address: '127.0.0.1:80' }] }, { listen: [wrong] }] } }
  await assert.rejects(checkListenHosts(model), (error) => {
    assert.ok(error instanceof PartError)
    assert.equal(error.part, wrong)
    assert.match(
      error.message,
      /^host not found in "no\.such\.host\.invalid:8000-8001" of the "listen" directive$/,
    )
    return true
  })
  await assert.rejects(checkListenHosts({ stream: { servers: [{ listen: [wrong] }] } }), PartError)
})

test('numbers, names of this host and paths are fine', async () => {
  const listen = ['*:80', '[::1]:80', '127.0.0.1:80', 'localhost:80', 'unix:/run/x.sock']
  const server = { listen: listen.map((address) => ({ address })) }
  await checkListenHosts({ http: { servers: [server] }, stream: { servers: [server, {}] } })
  await checkListenHosts({})
})
