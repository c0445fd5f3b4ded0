import { responseKinds } from '../../feedback/resolver-counts.ts'
import { type NameFacts, nameText, type ResolverFacts, shownResolvers } from './resolver-facts.ts'
import type { Entry } from './tree.ts'

/** Resolvers in the status tree, and what they follow. Times in milliseconds. */
export function* resolvers(all: Iterable<ResolverFacts>): Generator<Entry> {
  for (const { name, servers, counts, names } of shownResolvers(all)) {
    const { queries, sent, responses } = counts
    yield [
      name,
      () => [
        ['queries', () => members(queries, ['name', 'srv', 'addr'])],
        ['sent', () => members(sent, ['a', 'aaaa', 'srv', 'ptr'])],
        ['responses', () => members(responses, responseKinds)],
        [
          'evenkeel',
          () => [
            ['servers', servers.join(' ')],
            ['names', () => names.map((about): Entry => [nameText(about), () => followed(about)])],
          ],
        ],
      ],
    ]
  }
}

function members<K extends string>(from: Readonly<Record<K, number>>, keys: readonly K[]): Entry[] {
  return keys.map((key) => [key, from[key]])
}

function* followed({ addresses, ageMs, nextMs, error }: NameFacts): Generator<Entry> {
  yield ['addresses', addresses.join(' ')]
  if (ageMs !== undefined) yield ['age', Math.round(ageMs)]
  yield ['next', Math.round(nextMs)]
  if (error !== undefined) yield ['error', error]
}
