import { type Figures, yardstick } from './proxies-figures.ts'
import type { Measured } from './proxies-report.ts'

/** Nanoseconds a choice takes, by size of the group. */
export interface PickRow {
  readonly method: string
  readonly ns: readonly number[]
}

export interface Run {
  /** What it ran on, a sentence without its full stop. */
  readonly machine: string
  readonly rounds: number
  readonly measured: readonly Measured[]
  readonly picks: { readonly sizes: readonly number[]; readonly rows: readonly PickRow[] }
}

const begin = '<!-- npm run bench -- proxies --readme -->'
const end = '<!-- end -->'
const mebibyte = 1024 * 1024
const absent = '–'

/** Puts a text where the one of an earlier run stands. @throws where there is no place for it */
export function replaceBlock(readme: string, text: string): string {
  const from = readme.indexOf(begin)
  const to = readme.indexOf(end, from)
  if (from < 0 || to < 0) throw new Error(`README.md has no lines ${begin} and ${end}`)
  return `${readme.slice(0, from)}${begin}\n\n${text}\n\n${readme.slice(to)}`
}

/** The tables of a run, in Markdown. */
export function readmeText({ machine, rounds, measured, picks }: Run): string {
  const heads = measured.map(({ scenario }) => scenario.column)
  const warm = measured.every(({ found }) => found.every((one) => one.warm))
  const first = measured.find(({ scenario }) => scenario.variants)
  const names = measured[0]?.found.filter(({ variant }) => !variant) ?? []
  const grid = (title: string, cell: (one: Figures) => string) =>
    table(
      [title, ...heads],
      [
        ...names.map(({ name, title: subject }) => [
          subject,
          ...measured.map(({ found }) => {
            const one = found.find((other) => other.name === name)
            return one ? cell(one) : absent
          }),
        ]),
      ],
    )
  const noise = measured.map(({ found }) => {
    const range = found.find(({ name }) => name === yardstick)?.cpuRange
    return range ? `${micros(range[0])}–${micros(range[1])}` : absent
  })
  const costs = grid(`CPU µs a request (× ${yardstick})`, ({ name, cpu, ratio }) =>
    name === yardstick || ratio === undefined ? micros(cpu) : `${micros(cpu)} (${ratio.toFixed(2)})`,
  )
  return [
    `${machine}; medians of ${rounds} rounds${warm ? '' : '; the machine was too busy to warm all of them up'}.`,
    `${costs}\n${row([`${yardstick}, least–most: the noise`, ...noise])}`,
    grid('p50 / p99, ms', ({ p50, p99 }) => `${p50.toFixed(2)} / ${p99.toFixed(2)}`),
    grid('resident memory, MiB', ({ residentBytes }) => (residentBytes / mebibyte).toFixed(0)),
    ...(first ? [`${first.scenario.title}, with what a setting and the start cost:`, detail(first)] : []),
    `What a choice costs, ns (× round robin among ${picks.sizes[0]}), by the number of peers:`,
    pickTable(picks),
  ].join('\n\n')
}

function detail({ found }: Measured): string {
  return table(
    ['', 'CPU µs a request', `× ${yardstick}`, 'least–most', 'in its first second'],
    found.map(({ title, cpu, ratio, cpuRange: [least, most], firstCpu }) => [
      title,
      micros(cpu),
      ratio?.toFixed(2) ?? absent,
      `${micros(least)}–${micros(most)}`,
      firstCpu === undefined ? absent : micros(firstCpu),
    ]),
  )
}

function pickTable({ sizes, rows }: Run['picks']): string {
  const unit = rows[0]?.ns[0] ?? Number.NaN
  return table(
    ['', ...sizes.map((size) => grouped(size))],
    rows.map(({ method, ns }) => [
      `\`${method}\``,
      ...ns.map((value) => `${grouped(value)} (${(value / unit).toFixed(1)})`),
    ]),
  )
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n')
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

function micros(value: number): string {
  return value < 100 ? value.toFixed(1) : grouped(value)
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
