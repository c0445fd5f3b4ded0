import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ProbeStateEvent, probeStateChannel } from '../../../feedback/channels.ts'
import { ErrorLog } from '../../../sidecar/telemetry/error-log.ts'
import { describeProbe, logProbes } from '../../../sidecar/telemetry/probe-lines.ts'
import { group } from '../../support/peers.ts'

const upstream = group([1])

function event(fields: Partial<ProbeStateEvent>): ProbeStateEvent {
  const peer = upstream.peers[0]!
  return { upstream, peer, state: 'healthy', streak: 0, outMs: 0, probe: 'health', detail: '', ...fields }
}

const said = (fields: Partial<ProbeStateEvent>) => {
  const { level, text } = describeProbe(event(fields))
  return `${level}: ${text.replace('peer a of upstream "backend" is ', '')}`
}

test('a peer that probes take out is a warning with the reason, and that it is back a notice', () => {
  assert.equal(
    describeProbe(event({ state: 'unhealthy', streak: 3, detail: 'status 503' })).text,
    'peer a of upstream "backend" is unhealthy: probe "health" failed 3 times: status 503',
  )
  assert.equal(said({ state: 'unhealthy', streak: 1 }), 'warn: unhealthy: probe "health" failed 1 time')
  assert.equal(
    said({ state: 'healthy', streak: 2, outMs: 1500.4, detail: 'status 200' }),
    'notice: healthy: probe "health" passed 2 times, after 1500ms',
  )
})

test('what a reload does is told as such', () => {
  assert.equal(
    said({ state: 'checking', probe: '' }),
    'notice: checking: it has to pass its probes after the reload',
  )
  assert.equal(said({ state: 'healthy', probe: '' }), 'notice: healthy: nobody probes it any more')
})

test('an agent is named, and what it wrote is escaped', () => {
  assert.equal(
    said({ state: 'down', detail: 'down #disk\u001b[2J' }),
    'warn: down: so says the agent of probe "health": down #disk\\x1B[2J',
  )
  assert.equal(said({ state: 'ready' }), 'notice: ready: so says the agent of probe "health"')
})

test('whose probe it was is told where it was not this instance, and the id is escaped', () => {
  assert.equal(
    said({ state: 'unhealthy', streak: 2, detail: 'status 503', by: 'pod-7.x2' }),
    'warn: unhealthy: probe "health" failed 2 times: status 503 (asked by pod-7.x2)',
  )
  assert.equal(
    said({ state: 'ready', by: 'a\u001b[2J' }),
    'notice: ready: so says the agent of probe "health" (asked by a\\x1B[2J)',
  )
  assert.equal(said({ state: 'ready', by: undefined }), 'notice: ready: so says the agent of probe "health"')
})

test('each change is one line, until it is stopped', () => {
  const lines: string[] = []
  class Heard extends ErrorLog {
    override log(...[level]: Parameters<ErrorLog['log']>): void {
      lines.push(level)
    }
  }
  const stop = logProbes(new Heard())
  probeStateChannel.publish(event({ state: 'unhealthy' }))
  stop()
  probeStateChannel.publish(event({ state: 'unhealthy' }))
  assert.deepEqual(lines, ['warn'])
})
