import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Tally } from '../../../feedback/tally.ts'
import { Clients } from '../../../sidecar/proxy/clients.ts'
import type { Handler } from '../../../sidecar/proxy/host.ts'
import type { ListenSpec } from '../../../sidecar/proxy/listen-spec.ts'
import { defaultSettings } from '../../../sidecar/proxy/settings.ts'
import { dial } from '../../support/client.ts'
import { until } from '../../support/until.ts'

const key = '127.0.0.1:0'
const spec: ListenSpec = {
  key,
  address: { kind: 'tcp', host: '127.0.0.1', port: 0 },
  backlog: 10,
  headerTimeout: 60_000,
  maxHead: 32_768,
  keepaliveTimeout: 60_000,
  keepaliveRequests: 1000,
  dropUnderscores: true,
  dropInvalid: false,
  proxyProtocol: false,
  door: undefined,
  http2: false,
  maxStreams: 128,
  settings: defaultSettings,
}

/** Clients that say nothing, and how often it was told that their address has none any more. */
function silent() {
  let left = 0
  const unexpected = () => assert.fail('nothing is to be told')
  const handler: Handler = {
    serve: unexpected,
    ended: unexpected,
    malformed: unexpected,
    unsecured: unexpected,
    unruly: unexpected,
    unreadable: unexpected,
    closed: () => {
      left += 1
    },
  }
  const tally = new Tally()
  const clients = new Clients(handler, { threads: 1, thread: 0, tally }, 100, unexpected)
  const come = async () => {
    const { open } = tally.own
    const client = await dial(clients.addresses.texts()[0]!)
    await until(() => tally.own.open > open)
    return client
  }
  return { clients, come, counts: tally.own, left: () => left }
}

test('an address that is given up is done with once its last client has gone', async (t) => {
  const { clients, come, left } = silent()
  t.after(() => clients.destroy())
  await clients.addresses.apply([spec])
  const one = await come()
  const other = await come()
  await clients.addresses.apply([])
  assert.equal(left(), 0)
  one.close()
  other.close()
  await until(() => left() === 1)
})

test('an address that is given up twice is done with once the clients of both times have gone', async (t) => {
  const { clients, come, counts, left } = silent()
  t.after(() => clients.destroy())
  await clients.addresses.apply([spec])
  const first = await come()
  await clients.addresses.apply([])
  await clients.addresses.apply([spec])
  const second = await come()
  await clients.addresses.apply([])
  first.close()
  await until(() => counts.open === 1)
  // Whoever looks for it now and then has looked by then.
  await wait(700)
  assert.equal(left(), 0)
  second.close()
  await until(() => left() === 1)
})

test('an address that is taken again is not done with, whoever leaves', async (t) => {
  const { clients, come, counts, left } = silent()
  t.after(() => clients.destroy())
  await clients.addresses.apply([spec])
  const first = await come()
  await clients.addresses.apply([])
  await clients.addresses.apply([spec])
  first.close()
  await until(() => counts.open === 0)
  assert.equal(left(), 0)
})
