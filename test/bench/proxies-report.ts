import { type Figures, yardstick } from './proxies-figures.ts'
import type { Scenario } from './proxies-scenarios.ts'

/** What one scenario found. */
export interface Measured {
  readonly scenario: Scenario
  readonly found: readonly Figures[]
}

const mebibyte = 1024 * 1024

/** A scenario's figures for a terminal. */
export function scenarioText({ scenario, found }: Measured): string {
  const how = scenario.rate === undefined ? 'in the closed loop' : `at ${scenario.rate} requests a second`
  const head = [
    'µs a request',
    `× ${yardstick}`,
    'least–most',
    'first second',
    'at the rate',
    'p50 ms',
    'p99 ms',
    'MiB',
    'requests/s',
    'core',
    'load',
  ]
  const rows = found.map((one) => [
    one.cpu.toFixed(1),
    one.ratio?.toFixed(2) ?? '',
    one.cpuRange.map((value) => value.toFixed(1)).join('–'),
    one.firstCpu?.toFixed(1) ?? '',
    one.pacedCpu?.toFixed(1) ?? '',
    one.p50.toFixed(2),
    one.p99.toFixed(2),
    (one.residentBytes / mebibyte).toFixed(0),
    one.perSecond.toFixed(0),
    `${(100 * one.busy).toFixed(0)} %`,
    `${(100 * one.loadBusy).toFixed(0)} %`,
  ])
  const widths = head.map((word, i) => Math.max(word.length, ...rows.map((row) => row[i]!.length)) + 2)
  const line = (name: string, cells: readonly string[]) =>
    name.padEnd(18) + cells.map((cell, i) => cell.padStart(widths[i]!)).join('')
  return [
    `${scenario.title}; times ${how}`,
    line('', head),
    ...found.map((one, i) => line(one.warm ? one.name : `${one.name} *`, rows[i]!)),
    ...(found.every(({ warm }) => warm) ? [] : ['* not warm yet: the machine was too busy']),
  ].join('\n')
}
