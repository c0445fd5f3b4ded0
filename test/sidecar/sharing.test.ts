import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sharing } from '../../sidecar/sharing.ts'
import { errorLog } from '../../sidecar/telemetry/error-log.ts'
import { fleetOptions } from '../support/fleet-options.ts'
import { redisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'

test('a reload that changes `required` alone keeps the connection, and one without a fleet says so', async (t) => {
  await using server = await redisServer()
  const lines: string[] = []
  t.mock.method(errorLog, 'log', (level: string, text: string) => lines.push(`${level} ${text}`))
  const sharing = new Sharing()
  const options = fleetOptions(server)
  await sharing.prepare(options)
  sharing.use(options, [])
  const { fleet } = sharing
  await until(() => fleet!.up)
  const { since } = fleet!
  sharing.use({ ...options, required: true }, [])
  assert.equal(sharing.fleet, fleet)
  assert.deepEqual([fleet!.required, fleet!.up, fleet!.since], [true, true, since])
  sharing.use(options, [])
  assert.deepEqual([sharing.fleet === fleet, fleet!.required], [true, false])
  sharing.use({ ...options, group: 'other' }, [])
  const other = sharing.fleet!
  assert.notEqual(other, fleet)
  // Redis was heard through the one before.
  assert.notEqual(other.silence, undefined)
  await until(() => other.up)
  sharing.use(undefined, [])
  sharing.use(undefined, [])
  assert.equal(sharing.fleet, undefined)
  const name = `redis at 127.0.0.1:${server.port}`
  assert.deepEqual(lines, [
    `notice fleet: sharing through ${name}`,
    `notice fleet: sharing through ${name}`,
    'notice fleet: shared no more',
  ])
  await other.stop()
})
