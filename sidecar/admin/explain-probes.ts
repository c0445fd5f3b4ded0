import type { AgentOrders } from '../../feedback/agent.ts'
import type { ProbeFacts } from './facts.ts'

/** What a probe makes of a peer. Times in milliseconds. */
export interface ProbeExplanation {
  readonly probe: string
  readonly type: string
  /** The location that it stands in. */
  readonly location: string
  readonly mode: string
  /** Whether one instance asks for all, or each for itself. */
  readonly scope: 'fleet' | 'instance'
  readonly interval: number
  readonly essential: boolean
  /** Results in a row up to now, and how many of them decide. */
  readonly fails: { readonly now: number; readonly of: number }
  readonly passes: { readonly now: number; readonly of: number }
  /** Undefined before the first since the configuration was read. */
  readonly last: ProbeResult | undefined
  /** Whether the peer is being asked now, by this instance. */
  readonly asking: boolean
  /** Until the peer is due; where the scope is the fleet, until this instance asks if no other has. */
  readonly next: number
  /** For how long this instance leaves the peer to the others, since it fails from here alone; undefined: it does not. */
  readonly leaves: number | undefined
}

export interface ProbeResult {
  /** Undefined: it said nothing of the peer. */
  readonly passed: boolean | undefined
  /** What was seen, or why it did not pass. */
  readonly detail: string
  readonly at: string
  readonly age: number
  readonly took: number
  /** Id of the instance that asked; undefined: this one. */
  readonly by: string | undefined
}

const tenths = (ms: number) => Math.round(ms * 10) / 10

export function explainProbes(facts: readonly ProbeFacts[], now: number): ProbeExplanation[] {
  return facts.map(({ probe, standing, last, shared, leavesMs, asking, nextMs }) => ({
    probe: probe.name,
    type: probe.kind.name,
    location: probe.location,
    mode: probe.mode,
    scope: shared ? 'fleet' : 'instance',
    interval: probe.interval,
    essential: probe.essential,
    fails: { now: standing.fails, of: standing.rule.fails },
    passes: { now: standing.passes, of: standing.rule.passes },
    last: last && {
      passed: last.passed,
      detail: last.detail,
      at: new Date(last.at).toISOString(),
      age: tenths(now - last.endedAt),
      took: tenths(last.tookMs),
      by: last.by,
    },
    asking,
    next: tenths(nextMs),
    leaves: leavesMs > 0 ? tenths(leavesMs) : undefined,
  }))
}

/** The same in a line. */
export function probeLine(about: ProbeExplanation): string {
  const { fails, passes, last } = about
  const next = nextOf(about)
  const name = `${about.type} probe ${about.probe}`
  if (last === undefined) return `${name}: not asked yet; ${next}`
  let result = 'says nothing'
  if (last.passed === false) result = `failed ${fails.now} in a row, ${fails.of} take it out`
  else if (last.passed === true) result = `passed ${passes.now} in a row, ${passes.of} bring it back`
  const seen = last.detail === '' ? '' : `: ${printable(last.detail)}`
  const by =
    about.scope === 'fleet' ? ` by ${last.by === undefined ? 'this instance' : printable(last.by)}` : ''
  return `${name}: ${result}; ${seconds(last.age)} ago${by}${seen}; ${next}`
}

function nextOf({ scope, asking, next, leaves }: ProbeExplanation): string {
  if (asking) return 'being asked now'
  if (scope === 'instance') return `next in ${seconds(next)}`
  const left = leaves === undefined ? '' : `, left to the others for ${seconds(leaves)}`
  return `asked for the fleet${left}; if nobody does, by this instance in ${seconds(next)}`
}

export function* agentNotes({ state, weight, max_conns }: AgentOrders): Generator<string> {
  if (state !== 'ready') yield `${state} by its agent`
  if (weight !== 1) yield `${Number((100 * weight).toPrecision(3))} % of its weight by its agent`
  if (max_conns !== undefined) yield `at most ${max_conns} by its agent`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** A peer may have written it, and a terminal may show it. */
export function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
