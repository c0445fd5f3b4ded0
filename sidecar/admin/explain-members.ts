import { printable } from './explain-probes.ts'
import type { Facts, UpstreamFacts } from './facts.ts'
import { nameText, shownResolvers } from './resolver-facts.ts'
import { shownChange } from './shown-changes.ts'

/*
 * Why a group has the peers that it has, beside what the file says: the names that it follows, and what was changed while
 * the program runs. Times in milliseconds.
 */

export interface Members {
  /** Undefined where no name is followed, and in threads that leave that to another. */
  readonly names: readonly NameExplanation[] | undefined
  /** Undefined where all is as in the file. */
  readonly changes: readonly ReturnType<typeof shownChange>[] | undefined
}

export interface NameExplanation {
  /** As DNS has it: `_http._tcp.shop.internal` for a service. */
  readonly name: string
  readonly addresses: readonly string[]
  /** Since they were last heard; undefined: never. */
  readonly age: number | undefined
  /** Until it is looked up again; 0 while that is under way. */
  readonly next: number
  /** Why the last look-up did not find it; undefined where it did. */
  readonly error: string | undefined
}

export function explainMembers(
  { followed, upstream }: UpstreamFacts,
  facts: Pick<Facts, 'resolvers' | 'runtime'>,
): Members {
  const own = new Set(followed.map(nameText))
  const names =
    own.size === 0
      ? []
      : shownResolvers(facts.resolvers())
          .flatMap(({ names }) => names)
          .filter((about) => own.has(nameText(about)))
  const changes = (facts.runtime()?.list() ?? []).filter((change) => change.upstream === upstream.name)
  return {
    names:
      names.length === 0
        ? undefined
        : names.map((about) => ({
            name: nameText(about),
            addresses: about.addresses,
            age: about.ageMs === undefined ? undefined : Math.round(about.ageMs),
            next: Math.round(about.nextMs),
            error: about.error,
          })),
    changes: changes.length === 0 ? undefined : changes.map(shownChange),
  }
}

/** The same for people, a line each. */
export function* memberLines({ names = [], changes = [] }: Partial<Members>): Generator<string> {
  for (const { name, addresses, age, next, error } of names) {
    const count = addresses.length
    const what = count === 0 ? 'no address' : count === 1 ? '1 address' : `${count} addresses`
    const old = age === undefined ? 'never heard' : `heard ${seconds(age)} s ago`
    const again = next === 0 ? 'asked for now' : `asked for again in ${seconds(next)} s`
    const trouble = error === undefined ? '' : `: ${printable(error)}`
    yield `name ${name}: ${what}, ${old}, ${again}${trouble}`
  }
  for (const about of changes) {
    const { change, value, file, at, by } = about
    const who = 'peer' in about ? about.peer : about.server
    const said = file === undefined ? '' : `, where the file says ${file}`
    let what = `${change} of ${who} is ${value}${said}`
    if (change === 'added') what = `${value} is added`
    if (change === 'removed') what = `${who} is removed`
    yield `changed: ${what}, by ${by} at ${at}`
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000)
}
