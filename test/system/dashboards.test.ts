// A real Prometheus reads two instances at work, and every expression of every panel, rule and alert is put to it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { alertExpr } from '../../dashboards/alert.ts'
import { alerts } from '../../dashboards/alerts.ts'
import { peerStates, readyState } from '../../dashboards/colours.ts'
import { recordingRules } from '../../dashboards/recording.ts'
import { BoardsScene } from '../support/boards-scene.ts'
import { filledIn, otherQueries, panelQueries } from '../support/expressions.ts'
import { type Prometheus, prometheus, type Sample } from '../support/prometheus.ts'

let scene: BoardsScene
let server: Prometheus
before(async () => {
  scene = await new BoardsScene().open()
  server = await prometheus({
    targets: scene.instances.map(({ ports }) => ({
      job: 'evenkeel',
      address: `127.0.0.1:${ports['ADMIN']}`,
      labels: { namespace: 'town' },
    })),
    rules: ['recording', 'alerts'].map(
      (name) => new URL(`../../dashboards/rules/${name}.yaml`, import.meta.url).pathname,
    ),
    // A busy machine may take a while to answer one.
    scrapeMs: 1000,
  })
})
after(async () => {
  await server?.stop()
  await scene?.[Symbol.asyncDispose]()
})

/** What the scene is bound to raise, with what it is about. */
const raised = [
  'EvenkeelCanaryErrors shop canary',
  'EvenkeelCanarySlower shop canary',
  'EvenkeelChangedByHand moved',
  ...['full', 'gone', 'queued', 'shop', 'spent'].flatMap((group) => [
    `EvenkeelErrorsFast ${group}`,
    `EvenkeelErrorsSlow ${group}`,
  ]),
  'EvenkeelHiddenFailures retry',
  'EvenkeelNameLost',
  'EvenkeelNameNotFound',
  'EvenkeelNoLivePeers gone',
  'EvenkeelOnBackups moved',
  'EvenkeelOverflow full',
  'EvenkeelPeerOut gone',
  'EvenkeelPeerOut probed',
  'EvenkeelQueueFails queued',
  'EvenkeelReloadFailed',
  'EvenkeelRetryBudgetSpent spent',
  'EvenkeelSessionsDropped learned',
]

/** Whether they hold is a matter of the machine that the test runs on. */
const ofTheMachine = ['EvenkeelLoopLag', 'EvenkeelSlowerThanUsual']

/** Alerts that are pending or firing, each once. */
function said(samples: readonly Sample[]): string[] {
  const lines = samples.map(({ labels: { alertname, upstream = '', track = '' } }) =>
    `${alertname} ${upstream} ${track}`.trim(),
  )
  return [...new Set(lines)].filter((line) => !ofTheMachine.includes(line.split(' ')[0]!)).toSorted()
}

test('the alerts are raised that this calls for, and no others', async () => {
  const wanted = raised.toSorted().join('\n')
  let last: string[] = []
  await server
    .gives(
      'ALERTS',
      (samples) => {
        last = said(samples)
        return last.join('\n') === wanted
      },
      // On a machine that does much else counters take their time to fill.
      45_000,
    )
    .catch(() => assert.deepEqual(last, wanted.split('\n')))
})

test('every panel has something to show, and none of it is no number', async () => {
  for (const { dashboard, panel, expr, legend, instant } of panelQueries()) {
    const where = `${dashboard}: ${panel}: ${filledIn(expr)}`
    const values = instant ? await now(filledIn(expr)) : await lately(filledIn(expr))
    assert.ok(values.length > 0, where)
    for (const { labels, value } of values) {
      assert.ok(!Number.isNaN(value), where)
      for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g))
        assert.ok(labels[label], `${where}: ${label}`)
    }
  }
})

test('variables have values, and loaded configurations are marked', async () => {
  for (const [where, expr] of otherQueries()) {
    // What is marked may not have happened since Prometheus began; whether it has is known all the same.
    const value = expr.replace(/ > 0$/, '')
    assert.ok((await now(filledIn(value))).length > 0, `${where}: ${expr}`)
    await now(filledIn(expr))
  }
  const marks = otherQueries().filter(([where]) => where.includes('mark'))
  for (const { value } of await now(filledIn(marks[0]![1]))) {
    assert.ok(Math.abs(value - Date.now()) < 120_000, 'a moment in milliseconds')
  }
})

test('rules are evaluated, and what they record and compare is there', async () => {
  const rules = await server.rules()
  assert.equal(rules.length, recordingRules.length + alerts.length)
  for (const { name, health, lastError } of rules) assert.equal(health, 'ok', `${name}: ${lastError}`)
  for (const { record } of recordingRules) assert.ok(numbers(await now(record)).length > 0, record)
  for (const alert of alerts) {
    assert.ok(numbers(await now(alert.value.text)).length > 0, alert.name)
    await now(alertExpr(alert).text)
  }
})

test('graphs of times lead to traces', async () => {
  const shown = panelQueries().filter(({ exemplar }) => exemplar)
  assert.ok(shown.length > 10)
  for (const { dashboard, panel, expr } of shown) {
    const found = await server.exemplars(filledIn(expr))
    assert.ok(found.length > 0, `${dashboard}: ${panel}`)
    for (const { labels } of found) assert.match(labels['trace_id'] ?? '', /^[0-9a-f]{32}$/)
  }
})

test('a track without requests is no news: samples are 0, and nothing else is said of it', async () => {
  const seen: string[] = []
  for (const { dashboard, panel, expr, legend } of panelQueries()) {
    if (dashboard !== 'canary') continue
    const values = await now(filledIn(expr, { upstream: 'idle' }))
    for (const { value } of values) assert.ok(Number.isFinite(value), `${panel} ${legend}: ${value}`)
    if (/^(Errors|Duration|More errors|Slower)/.test(panel))
      assert.deepEqual(values, [], `${panel} ${legend}`)
    if (panel === 'Samples') seen.push(...values.map(({ labels, value }) => `${labels['track']} ${value}`))
  }
  assert.deepEqual(seen.toSorted(), ['canary 0', 'stable 0'])
})

test('the numbers say what happens', async () => {
  const of = async (panel: string, upstream: string, at = 0): Promise<Sample[]> => {
    const [dashboard, title] = panel.split(': ')
    const query = panelQueries().filter((one) => one.dashboard === dashboard && one.panel === title)[at]!
    return now(filledIn(query.expr, { upstream }))
  }
  const one = async (...args: Parameters<typeof of>) => {
    const values = await of(...args)
    assert.equal(values.length, 1, `${args}: ${JSON.stringify(values)}`)
    return values[0]!.value
  }
  assert.equal(await one('overview: Errors', 'gone'), 1)
  assert.equal(await one('overview: Peers that are ready', 'gone'), 0)
  assert.equal(await one('overview: Peers that are ready', 'probed'), 1)
  // Every other request goes to the failing peer first.
  const saved = await one('attempts: Requests saved by a retry', 'retry')
  assert.ok(saved > 0.35 && saved < 0.65, `${saved} saved`)
  const tries = await one('attempts: Attempts a request', 'retry')
  assert.ok(tries > 1.35 && tries < 1.65, `${tries} attempts a request`)
  const states = new Map((await of('probes: State of each peer', 'probed')).map(byPeer))
  assert.equal(states.get(scene.address('ill')), peerStates.unhealthy.value)
  assert.equal(states.get(scene.address('probed')), readyState.value)
  for (const panel of ['Share of attempts and of time', 'What the split makes of their times']) {
    assert.ok((await of(`why-slow: ${panel}`, 'shop')).length > 0)
  }
  const failed = await one('upstream: Failed calls by peer', 'called')
  assert.ok(failed > 0.2 && failed < 0.5, `${failed} of the calls`)
  const shares = await of('upstream: Share of each peer', 'told')
  assert.ok(Math.abs(shares.reduce((sum, { value }) => sum + value, 0) - 1) < 1e-6)
  const unequal = await one('why-slow: How unequal the peers are', 'shop')
  // Of 4 and 12 ms; a busy machine adds something to both.
  assert.ok(unequal > 1.3, `${unequal} times`)
  // Not kept: every attempt opens one.
  assert.equal(await one('why-slow: Reused connections', 'probed'), 0)
  const canary = await of('canary: Errors', 'shop')
  const errors = new Map(canary.map(({ labels, value }) => [labels['track'], value]))
  assert.equal(errors.get('stable'), 0)
  assert.ok(errors.get('canary')! > 0.05 && errors.get('canary')! < 0.4, `${errors.get('canary')}`)
})

const byPeer = ({ labels, value }: Sample): [string, number] => [labels['peer'] ?? '', value]

function numbers(samples: readonly Sample[]): readonly Sample[] {
  for (const { labels, value } of samples) assert.ok(!Number.isNaN(value), JSON.stringify(labels))
  return samples
}

function now(expr: string): Promise<Sample[]> {
  return server.query(expr)
}

/** All points of all series of the last seconds, as a graph asks for them. */
async function lately(expr: string): Promise<Sample[]> {
  const end = Date.now() / 1000
  const form = new URLSearchParams({ query: expr, start: String(end - 5), end: String(end), step: '1' })
  const response = await fetch(`${server.url}/api/v1/query_range`, { method: 'POST', body: form })
  // The shape is the one that Prometheus documents.
  const answer = (await response.json()) as {
    error?: string
    data?: { result: { metric: Record<string, string>; values: [number, string][] }[] }
  }
  assert.equal(answer.error, undefined, expr)
  return (answer.data?.result ?? []).flatMap(({ metric, values }) =>
    values.map(([, text]) => ({ labels: metric, value: Number(text.replace('Inf', 'Infinity')) })),
  )
}
