import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listSwitchChannel, sessionsFullChannel } from '../../../feedback/channels.ts'
import { ErrorLog } from '../../../sidecar/telemetry/error-log.ts'
import { describeFull, describeSwitch, logGroups } from '../../../sidecar/telemetry/group-lines.ts'
import { group } from '../../support/peers.ts'

test('a switch to the backups is a warning, one back is news', () => {
  const upstream = group([1], { name: 'shop' })
  assert.deepEqual(describeSwitch({ upstream, to: 'backups' }), {
    level: 'warn',
    text: 'upstream "shop" switched to its backups',
  })
  assert.deepEqual(describeSwitch({ upstream, to: 'primaries' }), {
    level: 'notice',
    text: 'upstream "shop" switched to its primaries',
  })
})

test('of sessions that gave way it is said how many', () => {
  const text = (dropped: number) => describeFull({ group: 'shop', zone: 'ids', dropped }).text
  assert.equal(
    text(1),
    'sticky learn zone "ids" of upstream "shop" is full: the session that was left alone longest gave way to others',
  )
  assert.match(text(12), /the 12 sessions that were left alone longest/)
})

test('each is a line in the log until that is stopped', () => {
  const lines: string[] = []
  const log = Object.assign(new ErrorLog(), { log: (level: string) => lines.push(level) })
  const stop = logGroups(log)
  const upstream = group([1])
  listSwitchChannel.publish({ upstream, to: 'backups' })
  sessionsFullChannel.publish({ group: 'shop', zone: 'ids', dropped: 1 })
  stop()
  listSwitchChannel.publish({ upstream, to: 'primaries' })
  assert.deepEqual(lines, ['warn', 'warn'])
})
