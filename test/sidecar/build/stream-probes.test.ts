import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveProbe } from '../../../probes/live-probe.ts'
import { prepare } from '../../../sidecar/build/running.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { probeDefaults } from '../../support/live-probe.ts'

/** The probes of a server of `stream` in front of the group `backend`. */
async function probesOf(
  lines: string,
  { listen = '127.0.0.1:53', peer = '127.0.0.1:8081' } = {},
): Promise<readonly LiveProbe[]> {
  const text = `stream {
    upstream backend { zone backend 1m; server ${peer}; server 127.0.0.1:8082 backup; }
    map $upstream_probe_response $good { PONG 1; }
    server { listen ${listen}; proxy_pass backend; ${lines} }
  }
  http { upstream backend { zone b 1m; server 127.0.0.1:1; } }`
  const loaded = loadText(text, 'evenkeel.conf', 'nginx')
  const prepared = await prepare(loaded, { prefix: '/etc/evenkeel', version: '1' }, undefined)
  return prepared.commit().probes
}

async function one(lines: string, listen?: string): Promise<LiveProbe> {
  const [probe] = await probesOf(lines, listen === undefined ? {} : { listen })
  return probe!
}

test('a probe has the defaults of the directive, and asks the group of stream', async () => {
  const probe = await one('upstream_probe health;')
  const { upstream, kind, location, ...rest } = probe
  assert.deepEqual([upstream.name, kind.name, location], ['stream/backend', 'tcp', '127.0.0.1:53'])
  const { call: _call, question: _question, definition: _definition, retry: _retry, ...values } = rest
  assert.deepEqual(values, { name: 'health', ...probeDefaults })
  const call = probe.call()
  assert.deepEqual([call.probe, call.upstream, call.protocol], ['health', 'stream/backend', 'TCP'])
  assert.equal(probe.question(call), undefined)
})

test('its own arguments, and a file that is looked for beside the configuration', async () => {
  const probe = await one(
    `upstream_probe p udp port=9 interval=1s timeout=300ms fails=3 passes=2 essential persistent mode=idle
       send=words max_response=1k test=$good;`,
    '127.0.0.1:53 udp',
  )
  assert.deepEqual(probe.args, { send: '/etc/evenkeel/words', max_response: '1k' })
  assert.deepEqual([probe.kind.name, probe.location, probe.port], ['udp', '127.0.0.1:53 udp', 9])
  assert.deepEqual([probe.interval, probe.timeout, probe.fails, probe.passes], [1000, 300, 3, 2])
  assert.deepEqual([probe.essential, probe.persistent, probe.mode], [true, true, 'idle'])
  const call = probe.call()
  assert.equal(call.protocol, 'UDP')
  assert.equal(probe.test!(call), '')
  call.probeBody = 'PONG'
  assert.equal(probe.test!(Object.assign(probe.call(), { probeBody: 'PONG' })), '1')
  assert.deepEqual((await one('upstream_probe p send=data:x;')).args, { send: 'data:x' })
})

test('a probe is the same for all instances that ask the same', async () => {
  const definition = async (line: string) => (await one(`upstream_probe p ${line};`)).definition
  const plain = await definition('')
  assert.equal(await definition('interval=1s fails=3 essential'), plain)
  for (const other of ['udp', 'port=1', 'send=data:x', 'max_response=0', 'test=$good']) {
    assert.notEqual(await definition(other), plain, other)
  }
})

test('an unknown variable, and one of requests, is a mistake', async () => {
  for (const name of ['nothing', 'upstream_status', 'upstream_probe_body']) {
    await assert.rejects(probesOf(`upstream_probe p test=$${name};`), {
      message: `unknown "${name}" variable`,
    })
  }
})

test('a name that leads to another host cannot be asked for its queue', async () => {
  const line = 'upstream_probe queue type=backlog limit=5;'
  assert.equal((await probesOf(line, { peer: 'localhost:8081' })).length, 1)
})
