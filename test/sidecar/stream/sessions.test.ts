import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Call } from '../../../feedback/call.ts'
import { Tally } from '../../../feedback/tally.ts'
import { Sessions } from '../../../sidecar/stream/sessions.ts'
import { type StreamServer, sessionDefaults } from '../../../sidecar/stream/settings.ts'
import { dial } from '../../support/client.ts'
import { until } from '../../support/until.ts'

const key = '127.0.0.1:0'

test('clients that come before anybody serves them wait, and those that leave again are forgotten', async (t) => {
  const tally = new Tally()
  const ended: Call[] = []
  const unexpected = () => assert.fail('nothing is to be told')
  const news = { complain: unexpected, note: unexpected, dropped: unexpected }
  const sessions = new Sessions({ threads: 1, thread: 0, tally }, 100, news)
  t.after(() => sessions.destroy())
  await sessions.addresses.apply([{ key, address: { kind: 'tcp', host: '127.0.0.1', port: 0 }, backlog: 10 }])
  const where = sessions.addresses.texts()[0]!
  const [patient, gone, cut] = await Promise.all([dial(where), dial(where), dial(where)])
  await gone.write('x')
  // All have been accepted by then.
  await wait(30)
  gone.close()
  cut.reset()
  await wait(30)
  const server: StreamServer = {
    address: key,
    proxied: false,
    door: undefined,
    settings: sessionDefaults,
    content: { kind: 'return', text: () => 'welcome' },
    accessLogs: [(call) => ended.push(call)],
    zone: undefined,
  }
  sessions.use(new Map([[key, server]]))
  assert.equal(`${await patient.inbox.take(7)}`, 'welcome')
  patient.close()
  await until(() => tally.own.open === 0)
  assert.equal(tally.own.tunnels, 0)
  // The one that was cut off before is no session.
  assert.equal(ended.length, 2)
})
