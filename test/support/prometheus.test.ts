import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { prometheus, promtool } from './prometheus.ts'

test('what a target tells can be asked for, with rules and exemplars', async () => {
  const page = [
    '# TYPE seconds histogram',
    'seconds_bucket{le="0.1"} 1 # {trace_id="abc"} 0.05 1700000000',
    'seconds_bucket{le="+Inf"} 2',
    'seconds_count 2',
    'seconds_sum 3',
    '# EOF\n',
  ].join('\n')
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'application/openmetrics-text; version=1.0.0; charset=utf-8')
    response.end(page.replace('1700000000', String(Date.now() / 1000)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-rules-'))
  const rules = join(folder, 'rules.yaml')
  writeFileSync(
    rules,
    'groups: [{name: g, rules: [{record: twice, expr: 2 * seconds_sum}, {alert: Slow, expr: twice > 5}]}]',
  )
  try {
    assert.match(await promtool('check', 'rules', rules), /2 rules found/)
    await using server = await prometheus({
      targets: [{ job: 'shop', address: `127.0.0.1:${port}`, labels: { pod: 'a' } }],
      rules: [rules],
      scrapeMs: 100,
      evaluationMs: 100,
    })
    const [sample] = await server.gives('twice')
    assert.deepEqual(sample, {
      labels: { __name__: 'twice', instance: `127.0.0.1:${port}`, job: 'shop', pod: 'a' },
      value: 6,
    })
    await server.gives('ALERTS{alertstate="firing"}')
    assert.deepEqual(
      (await server.rules()).map(({ name, health }) => `${name} ${health}`),
      ['twice ok', 'Slow ok'],
    )
    assert.deepEqual(
      (await server.targets()).map(({ labels, health }) => `${labels['job']} ${health}`),
      ['shop up'],
    )
    const exemplar = (await server.exemplars('seconds_bucket'))[0]!
    assert.equal(exemplar.value, 0.05)
    assert.deepEqual(exemplar.labels, { trace_id: 'abc' })
    assert.deepEqual(await server.query('absent_metric'), [])
    assert.deepEqual(await server.query('1/0'), [{ labels: {}, value: Number.POSITIVE_INFINITY }])
    await assert.rejects(server.query('rate('), /rate\(: .*parse error/)
    writeFileSync(rules, 'groups: [{name: g, rules: [{record: twice, expr: "2 *"}]}]')
    await assert.rejects(promtool('check', 'rules', rules), /parse error/)
  } finally {
    server.close()
    rmSync(folder, { recursive: true })
  }
})
