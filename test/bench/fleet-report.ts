import { type Cell, type Cost, interval } from './fleet-measure.ts'

/** What Redis was not asked to bear, since what it bore before says that it cannot. */
export interface Full {
  readonly cell: Cell
  /** CPU seconds a second that it would take. */
  readonly expected: number
}

/** Of so much of a core nothing is left for a burst. */
const most = 0.85

/** @returns why a cell is left out; undefined: it is to be measured. `before` is one with fewer instances. */
export function tooMuch(cell: Cell, before: Cost | undefined): Full | undefined {
  if (before === undefined) return undefined
  const expected = (before.cpu / before.cell.instances) * cell.instances
  return expected > most || isFull(before) ? { cell, expected } : undefined
}

/** Whether Redis could not keep up, or hardly. */
function isFull({ cpu }: Cost): boolean {
  return cpu > most
}

/** Whether there were fewer exchanges than are due, since something else than Redis had no time: then it says little. */
export function isStarved(cost: Cost): boolean {
  const { cell, exchanges } = cost
  return !isFull(cost) && exchanges < (0.85 * cell.instances * 1000) / interval
}

/** How costs grow with the number of instances, by all cells with the same peers. */
export interface Growth {
  /** CPU grows with this power of the instances, by regression of the logarithms: 1 is linear, 2 the square. */
  readonly cpu: number
  /** The same of commands. */
  readonly commands: number
  /** CPU of Redis for one instance, seconds a second: mean, and by how much of it the cells differ from that at most. */
  readonly each: number
  readonly spread: number
  /** Instances of which Redis needs a whole core. */
  readonly full: number
}

/** @param costs of at least two numbers of instances */
export function growth(costs: readonly Cost[]): Growth {
  const each = costs.map(({ cpu, cell }) => cpu / cell.instances)
  const mean = each.reduce((sum, one) => sum + one, 0) / each.length
  return {
    cpu: power(costs.map(({ cell, cpu }) => [cell.instances, cpu])),
    commands: power(costs.map(({ cell, exchanges }) => [cell.instances, exchanges])),
    each: mean,
    spread: Math.max(...each.map((one) => Math.abs(one / mean - 1))),
    // What a busy Redis needs for one is what counts when it is nearly full.
    full: Math.floor(1 / each.at(-1)!),
  }
}

/** Slope of the straight line through the logarithms, by least squares. */
export function power(points: readonly (readonly [number, number])[]): number {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)] as const)
  const meanX = logs.reduce((sum, [x]) => sum + x, 0) / logs.length
  const meanY = logs.reduce((sum, [, y]) => sum + y, 0) / logs.length
  const over = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return over / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}

export const head = [
  '| peers | instances | exchanges/s | commands/s | Redis CPU | for one instance | in, KB/s | out, KB/s | Redis memory, MB | round trip, ms: mean | p99 | over 100 ms | CPU of an instance |',
  '|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
].join('\n')

/** One line of the table. */
export function row(cost: Cost | Full): string {
  const { instances, peers } = cost.cell
  if ('expected' in cost) {
    return `| ${whole(peers)} | ${instances} | full (${percent(cost.expected)} of a core)${' |'.repeat(11)}`
  }
  const { exchanges, commands, cpu, received, sent, memory, mean, p99, late, own } = cost
  const cells = [
    whole(peers),
    instances,
    exchanges.toFixed(0),
    whole(commands),
    percent(cpu) + (isFull(cost) ? ' (full)' : isStarved(cost) ? ' (instances starved)' : ''),
    percent(cpu / instances),
    whole(received / 1000),
    whole(sent / 1000),
    (memory / 1e6).toFixed(memory < 1e6 ? 2 : 1),
    mean.toFixed(1),
    p99.toFixed(1),
    percent(late),
    percent((own * exchanges) / instances / 1000),
  ]
  return `| ${cells.join(' | ')} |`
}

/** @param costs of one number of peers */
export function growthText(costs: readonly Cost[]): string {
  const { cpu, commands, each, spread, full } = growth(costs)
  const { peers } = costs[0]!.cell
  const span = `${costs[0]!.cell.instances} to ${costs.at(-1)!.cell.instances}`
  return (
    `${whole(peers)} peers: from ${span} instances commands grow with the power ${commands.toFixed(2)} of the ` +
    `instances and CPU with ${cpu.toFixed(2)} (linear is 1, the square 2); an instance costs Redis ` +
    `${percent(each)} of a core ± ${(100 * spread).toFixed(0)} %; one Redis is full at about ${full} instances × ` +
    `${whole(peers)} peers`
  )
}

function percent(part: number): string {
  return `${(100 * part).toFixed(part < 0.00995 ? 2 : part < 0.0995 ? 1 : 0)} %`
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}
