import { type Exposition, escapeLabel } from './exposition.ts'
import { type NameFacts, nameText, type ShownResolver } from './resolver-facts.ts'

/*
 * Where the numbers of a resolver in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * how the samples are read. Name, type, help and labels are the table's.
 */

/** Adds the samples of a resolver. */
export type ResolverSampler = (out: Exposition, name: string, resolver: ShownResolver) => void

export const resolverSamplers: ReadonlyMap<string, ResolverSampler> = new Map([
  ['evenkeel_resolver_queries_total', byWord('type', ({ counts }) => counts.queries)],
  ['evenkeel_resolver_sent_total', byWord('type', ({ counts }) => counts.sent)],
  ['evenkeel_resolver_responses_total', byWord('status', ({ counts }) => counts.responses)],
  ['evenkeel_resolver_name_addresses', ofName(({ addresses }) => addresses.length)],
  ['evenkeel_resolver_name_failing', ofName(({ error }) => (error === undefined ? 0 : 1))],
  [
    'evenkeel_resolver_name_age_seconds',
    ofName(({ ageMs }) => (ageMs === undefined ? undefined : ageMs / 1000)),
  ],
])

/** One sample a word; all are told from the start, so that rates see the first. */
function byWord(
  label: string,
  read: (resolver: ShownResolver) => Readonly<Record<string, number>>,
): ResolverSampler {
  return (out, name, resolver) => {
    const labels = `{resolver="${escapeLabel(resolver.name)}",${label}="`
    for (const [word, count] of Object.entries(read(resolver))) out.sample(name, `${labels}${word}"}`, count)
  }
}

/** One sample a name that is followed. @param read undefined leaves it out */
function ofName(read: (about: NameFacts) => number | undefined): ResolverSampler {
  return (out, name, resolver) => {
    const labels = `{resolver="${escapeLabel(resolver.name)}",name="`
    for (const about of resolver.names) {
      const value = read(about)
      if (value !== undefined) out.sample(name, `${labels}${escapeLabel(nameText(about))}"}`, value)
    }
  }
}
