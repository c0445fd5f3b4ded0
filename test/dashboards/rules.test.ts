import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { anchor, runbooks } from '../../dashboards/alert.ts'
import { alerts } from '../../dashboards/alerts.ts'
import { recordingRules } from '../../dashboards/recording.ts'
import { type AlertCase, alertCases } from '../support/alert-cases.ts'
import { promtool } from '../support/prometheus.ts'

const root = new URL('../../', import.meta.url).pathname
const files = ['recording', 'alerts'].map((name) => `${root}dashboards/rules/${name}.yaml`)

test('promtool finds nothing wrong with the rules', async () => {
  const said = await promtool('check', 'rules', ...files)
  assert.match(said, new RegExp(`SUCCESS: ${recordingRules.length} rules found`))
  assert.match(said, new RegExp(`SUCCESS: ${alerts.length} rules found`))
})

/** Puts cases to promtool. @throws with what it found in the place of what was to come */
async function tried(tests: readonly unknown[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-alerts-'))
  try {
    const file = join(folder, 'test.yaml')
    writeFileSync(file, JSON.stringify({ rule_files: files, evaluation_interval: '1m', tests }))
    await promtool('test', 'rules', file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function seriesOf(given: Readonly<Record<string, string>>): { series: string; values: string }[] {
  return Object.entries(given).map(([series, values]) => ({ series, values }))
}

test('each alert is raised by what it is for, and not by what comes close', async () => {
  // Every case is a namespace of its own, so that many are tried in one run; those that take hours in another.
  const all = alertCases.map((one) => ({ ...one, namespace: `${one.alert}: ${one.says}` }))
  for (const named of [all.filter(({ at }) => at <= 60), all.filter(({ at }) => at > 60)]) {
    await tried([together(named)])
  }
})

/** A test of promtool's for all cases at once. */
function together(named: readonly (AlertCase & { readonly namespace: string })[]): unknown {
  return {
    interval: '1m',
    input_series: named.flatMap(({ given, namespace }) =>
      seriesOf(given).map(({ series, values }) => ({
        series: series.replace('{', `{namespace="${namespace}",`),
        values,
      })),
    ),
    promql_expr_test: named.map(({ alert, namespace, at, raised }) => ({
      expr: `ALERTS{alertname="${alert}",namespace="${namespace}",alertstate="firing"}`,
      eval_time: `${at}m`,
      exp_samples: raised.map((labels) => {
        const all = {
          alertname: alert,
          alertstate: 'firing',
          severity: severityOf(alert),
          namespace,
          ...labels,
        }
        const text = Object.entries(all).map(([name, value]) => `${name}="${value}"`)
        return { labels: `ALERTS{${text.join(',')}}`, value: 1 }
      }),
    })),
  }
}

function severityOf(alert: string): string {
  return alerts.find(({ name }) => name === alert)!.severity
}

test('a case that is not as it says is found', async () => {
  const [first] = alertCases
  const wrong = {
    interval: '1m',
    input_series: seriesOf(first!.given),
    promql_expr_test: [{ expr: 'ALERTS{alertstate="firing"}', eval_time: '3m', exp_samples: [] }],
  }
  await assert.rejects(tried([wrong]), /EvenkeelNoLivePeers/)
})

test('there is a case for every alert, of either kind', () => {
  const names = (wanted: boolean) =>
    new Set(alertCases.filter(({ raised }) => raised.length > 0 === wanted).map(({ alert }) => alert))
  const all = alerts.map(({ name }) => name).toSorted()
  assert.deepEqual([...names(true)].toSorted(), all)
  assert.deepEqual([...names(false)].toSorted(), all)
})

test('what an alert says has its numbers in words', async () => {
  const { given } = alertCases.find(({ alert }) => alert === 'EvenkeelHiddenFailures')!
  const { description, summary } = alerts.find(({ name }) => name === 'EvenkeelHiddenFailures')!
  await tried([
    {
      interval: '1m',
      input_series: seriesOf(given),
      alert_rule_test: [
        {
          eval_time: '20m',
          alertname: 'EvenkeelHiddenFailures',
          exp_alerts: [
            {
              exp_labels: { severity: 'warning', upstream: 'u', peer: 'a:1' },
              exp_annotations: {
                summary: summary.replace('{{ $labels.peer }}', 'a:1').replace('{{ $labels.upstream }}', 'u'),
                description: description.replace('{{ $value | humanizePercentage }}', '50%'),
                runbook: 'docs/runbooks.md#evenkeelhiddenfailures',
              },
            },
          ],
        },
      ],
    },
  ])
})

test('each alert has a section in the runbooks, which says what it means, how to check and what to do', () => {
  const sections = readFileSync(root + runbooks, 'utf8')
    .split(/^## /m)
    .slice(1)
  const headed = new Map(sections.map((text) => [text.slice(0, text.indexOf('\n')), text]))
  const titles = alerts.map(({ name }) => name)
  assert.deepEqual(
    [...headed.keys()].filter((title) => title.startsWith('Evenkeel')).toSorted(),
    titles.toSorted(),
  )
  for (const alert of alerts) {
    assert.equal(anchor(alert), alert.name.toLowerCase())
    for (const part of ['**Means.**', '**Check.**', '**Do.**']) {
      assert.ok(headed.get(alert.name)!.includes(part), `${alert.name}: ${part}`)
    }
  }
})
