import type { Wanted } from '../../feedback/carry.ts'
import type { Membership } from '../membership.ts'
import { alike, buildGroups } from './groups.ts'
import { ownMemory } from './memory.ts'
import { type Plan, planGroups } from './plans.ts'
import { assemble, type Basis, levelsOf, type Running } from './running.ts'

/** What a refresh changes. */
export interface Refreshment {
  /** All groups, with the peers that they are to have. */
  readonly plans: readonly Plan[]
  /** A line for each group that changes. */
  readonly lines: readonly string[]
  /** Why groups stay as they are that ought to change. */
  readonly failures: readonly Error[]
}

/**
 * Finds out which groups have other members than those that run. A group that cannot have the peers that it should
 * stays as it is, and keeps no other one from changing.
 */
export function refreshment(basis: Basis, membership: Membership, running: Running): Refreshment {
  const lines: string[] = []
  const failures: Error[] = []
  let levels: ReturnType<typeof levelsOf> | undefined
  const plans = planGroups(basis.drafts, membership).map((plan) => {
    const before = running.groups.get(plan.name.toLowerCase())?.plan
    if (before === undefined || alike(plan, before)) return before ?? plan
    try {
      levels ??= levelsOf(basis.model, basis.options)
      buildGroups([plan], levels, ownMemory(0), new Map())
      lines.push(lineOf(before, plan))
      return plan
    } catch (error) {
      // Whatever a group's own parts throw.
      failures.push(error instanceof Error ? error : new Error(String(error)))
      return before
    }
  })
  return { plans, lines, failures }
}

/** The configuration that runs, with these peers in its groups. Groups that have them already go on as they are. */
export function rebuild({ model, options, threads }: Basis, plans: readonly Plan[], old: Running): Running {
  return assemble(model, plans, options, ownMemory(threads), old, true)
}

function lineOf(before: Plan, after: Plan): string {
  const known = new Map(before.wanted.map((each) => [keyOf(each), each]))
  const added: string[] = []
  const changed: string[] = []
  for (const each of after.wanted) {
    const old = known.get(keyOf(each))
    known.delete(keyOf(each))
    if (old === undefined) added.push(each.name)
    else if (!sameOptions(old, each)) changed.push(each.name)
  }
  const removed = Array.from(known.values(), ({ name }) => name)
  const parts = Object.entries({ added, removed, changed }).flatMap(([what, names]) =>
    names.length > 0 ? `${what} ${names.join(' ')}` : [],
  )
  // The same peers in another order change where a key goes.
  return `upstream "${after.name}": ${parts.join(', ') || 'another order of peers'}`
}

function keyOf({ server, name }: Wanted): string {
  return `${server}\0${name}`
}

function sameOptions({ options: one }: Wanted, { options: other }: Wanted): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
