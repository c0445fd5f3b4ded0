// The guide's example of `least_time`: shares against the times that were measured while they were given.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Backend } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { at, inFront, peers } from '../../support/configured.ts'
import type { Lab } from '../../support/invariants.ts'
import { seed } from '../../support/seed.ts'
import { undisturbed } from '../../support/undisturbed.ts'

/** Answers and the sum of their times to the header of each peer, over all groups. */
async function measured({ sidecar }: Lab, list: readonly Backend[]) {
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  const total = (what: string, address: string) => {
    const lines = text.matchAll(
      new RegExp(`^evenkeel_peer_header_seconds_${what}\\{.*peer="${address}".*\\} (\\S+)$`, 'gm'),
    )
    return [...lines].reduce((sum, [, value]) => sum + Number(value), 0)
  }
  return list.map(({ address }) => ({ sum: total('sum', address), count: total('count', address) }))
}

/** A's part of so many requests that each of the clients sends, one after another; each to the path of its number. */
async function share({ port }: Lab, clients: number, requests: number): Promise<number> {
  let first = 0
  const one = async (_: unknown, i: number) => {
    using client = await dial(port)
    for (let sent = 0; sent < requests; sent++) if ((await client.ask(`/${i}`)).text === 'A') first += 1
  }
  await Promise.all(Array.from({ length: clients }, one))
  return first / (clients * requests)
}

const keep = 'keepalive_requests 10000;'

for (const [where, groups, clients, requests] of [
  // Each client has a group of its own, so that nothing is in flight when it asks: the draw alone decides.
  ['idle peers', 16, 16, 160],
  ['busy peers', 1, 8, 250],
] as const) {
  test(`the share of ${where} is inverse to the time to the header`, () =>
    undisturbed(async () => {
      await using two = await peers(2)
      two.list[0]!.script = { body: 'A', after: 5 }
      two.list[1]!.script = { body: 'B', after: 20 }
      const example = await seed('least-time', at)
      const names = Array.from({ length: groups }, (_, i) => (i === 0 ? 'backend' : `backend${i}`))
      const upstreams = names.map((name) => example.replaceAll('backend', name)).join('\n')
      const others = names.slice(1).map((name, i) => `location /${i + 1} { proxy_pass http://${name}; }`)
      const locations = [`${keep} location / { proxy_pass http://backend; }`, ...others]
      await using lab = await inFront(upstreams, two, locations.join(' '))
      await share(lab, clients, 10)
      const before = await measured(lab, two.list)
      const found = await share(lab, clients, requests)
      const after = await measured(lab, two.list)
      const [a, b] = after.map(({ sum, count }, i) => (count - before[i]!.count) / (sum - before[i]!.sum))
      const expected = a! / (a! + b!)
      assert.ok(Math.abs(found - expected) < 0.03, `A's share is ${found}, by the times ${expected}`)
      await lab.settle(clients * (requests + 10))
    }))
}
