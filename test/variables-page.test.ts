import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { attemptVariables } from '../feedback/variables/attempts.ts'
import { orcaPrefixed, orcaVariables } from '../feedback/variables/orca.ts'
import { prefixed } from '../feedback/variables/prefixed.ts'
import { requestVariables } from '../feedback/variables/request.ts'
import { streamVariables } from '../feedback/variables/stream.ts'
import { tlsVariables } from '../feedback/variables/tls.ts'
import { traceVariables } from '../feedback/variables/trace.ts'
import { Variables } from '../feedback/variables.ts'

const page = readFileSync(new URL('../docs/variables.md', import.meta.url), 'utf8')

/** Names in the rows that have a mark in this column; those that end in a star or in `NAME` stand for many. */
function listed(column: number): string[] {
  const rows = page.split('\n').filter((line) => line.startsWith('| `$'))
  return rows
    .map((row) => row.split('|'))
    .filter((cells) => cells[column]!.includes('✓'))
    .flatMap((cells) => [...cells[1]!.matchAll(/`\$([\w*]+)`/g)].map(([, name = '']) => name))
}

for (const [kind, column, maps, prefixes] of [
  [
    'http',
    2,
    [requestVariables, tlsVariables, attemptVariables, orcaVariables, traceVariables],
    [...prefixed.keys(), ...orcaPrefixed.keys()],
  ],
  ['stream', 3, [streamVariables], []],
] as const) {
  test(`the page of variables names every one of ${kind}, and no other`, () => {
    const names = listed(column)
    const families = names.filter((name) => /\*|NAME/.test(name)).map((name) => name.replace(/\*|NAME/, ''))
    for (const name of maps.flatMap((map) => [...map.keys()])) {
      assert.ok(names.includes(name) || families.some((start) => name.startsWith(start)), name)
    }
    for (const prefix of prefixes) assert.ok(families.includes(prefix), prefix)
    const variables = new Variables({}, kind)
    for (const name of names) {
      if (name.includes('*')) continue
      assert.ok(variables.has(name.replace('NAME', 'x')), name)
    }
  })
}
