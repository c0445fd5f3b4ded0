import type { Comparison, Ratios } from './compare.ts'
import type { Figures } from './measure.ts'

/** A comparison as people read it. Nothing in it depends on anything but the comparison. */
export function table(comparison: Comparison, group: string, own: string): string {
  const { central, rows, stage } = comparison
  const faulty = stage.fault !== undefined
  const one = { p50: 1, p99: 1, p999: 1 }
  const share = ({ shares }: Figures) => shares[stage.faulty]! / stage.fairShare(stage.faulty)
  const lines = [
    cells('best possible', central, one),
    ...rows.map(({ words, fleet, figures, ratios }) => {
      const line = cells(`${words === own ? '*' : ' '} ${words}${fleet ? ', fleet' : ''}`, figures, ratios)
      return faulty ? [...line, plain(share(figures)), back(figures.recovery!)] : line
    }),
  ]
  const heads = [
    ['', 'p50', 'p99', 'p99.9', 'p50', 'p99', 'p99.9', 'errors', 'share', 'back after'],
    ['', 'ms', 'ms', 'ms', '×', '×', '×', '%', '×', 's'],
  ].map((head) => (faulty ? head : head.slice(0, -2)))
  return `${[...premises(comparison), '', ...aligned([...heads, ...lines]), '', ...legend(comparison, group)].join('\n')}\n`
}

/** What is simulated. */
function premises({ stage, central, runs }: Comparison): string[] {
  const { plan, fault, window } = stage
  const { scenario } = plan
  const { from, to } = window
  const seeds = runs > 1 ? `median of seeds ${plan.seed} to ${plan.seed + runs - 1}` : `seed ${plan.seed}`
  const span = `from ${seconds(from)} to ${seconds(to)} of ${seconds(plan.duration)} s`
  return [
    `${scenario.name}: ${scenario.summary}${fault ? `, ${span}` : ''}`,
    `${count(stage.counted.length, 'peer')} of ${count(plan.workers, 'worker')}, ${plan.service} ms a request, ` +
      `network ${plan.network} ms each way, load ${percent(plan.load)} %, ${count(plan.instances, 'sidecar')}`,
    `${central.requests} requests measured, ${fault ? 'those of the time of the fault' : span}; ${seeds}`,
  ]
}

function legend({ stage, central, theory, rows }: Comparison, group: string): string[] {
  const lines = [
    `* the method of upstream "${group}"`,
    'Times are those of answers that are no errors, from the coming of a request to a sidecar on. × is the ratio to the',
    'best possible: one queue for all workers, whose first goes to the fastest peer that is well and has a worker free.',
    'It never waits for a faster one, so where speeds differ a method can come out ahead of it.',
  ]
  if (stage.fault !== undefined) {
    lines.push('"share" is how much of its fair share the peer got while it was at fault.')
    lines.push('"back after" is when the peer had half its fair share again, from the end of the fault on.')
  }
  const others = 1 - stage.fairShare(stage.faulty)
  if (stage.fault !== undefined && stage.plan.load >= others) {
    const asked =
      others > 0 ? `the others have a load of ${percent(stage.plan.load / others)} %` : 'there is nobody else'
    lines.push(
      `Without that peer ${asked}. The best possible then queues and fails nobody;`,
      'a method that fails requests has shorter times for the rest.',
    )
  }
  if (rows.some(({ fleet }) => fleet)) {
    lines.push('"fleet" is with sidecars that tell one another what they see.')
  }
  if (rows.some(({ figures }) => figures.recovery === Number.POSITIVE_INFINITY)) {
    lines.push('"never" is not before the end of the simulation.')
  }
  lines.push(
    '',
    `Erlang's C formula, for ${stage.workers} equal workers that nothing befalls: ${percent(theory.chance)} % of the requests wait,`,
    `${theory.meanMs === Number.POSITIVE_INFINITY ? 'without end' : `${plain(theory.meanMs)} ms in the mean`}; ` +
      `in the one queue here ${percent(central.waiting)} %, ${plain(central.wait)} ms.`,
  )
  return lines
}

function cells(name: string, figures: Figures, ratios: Ratios): string[] {
  const { p50, p99, p999, errors } = figures
  return [
    name,
    ...[p50, p99, p999].map(plain),
    ...[ratios.p50, ratios.p99, ratios.p999].map(plain),
    percent(errors),
  ]
}

function back(recovery: number): string {
  return recovery === Number.POSITIVE_INFINITY ? 'never' : seconds(recovery)
}

/** The first column to the left, the others to the right. */
function aligned(lines: readonly (readonly string[])[]): string[] {
  const columns = Math.max(...lines.map((line) => line.length))
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...lines.map((line) => line[i]?.length ?? 0)),
  )
  return lines.map((line) =>
    line
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]! + 2)))
      .join('')
      .trimEnd(),
  )
}

/** Three digits that count or two decimals; `-` for what is not to be had. */
export function plain(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return value.toFixed(0)
  return value >= 0.1 || value === 0 ? value.toFixed(2) : value.toPrecision(2)
}

function percent(part: number): string {
  return String(Number((100 * part).toPrecision(3)))
}

function seconds(ms: number): string {
  return String(Number((ms / 1000).toFixed(2)))
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
