// A method tried beside the one in force, in the real program: what it would have done, and that it does nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backends, backends } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { dieInTurn, mortal } from '../../support/dying-threads.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { SteadyLoad } from '../../support/steady-load.ts'

function config(upstream: string, top = ''): string {
  return `${top} http { access_log off; upstream u { ${upstream} }
    server { listen 127.0.0.1:PORT; location / { keepalive_requests 100000; proxy_pass http://u; } } }`
}

function servers({ list }: Backends, ...more: string[]): string {
  return list.map(({ address }, i) => `server ${address} ${more[i] ?? ''};`).join(' ')
}

/** Values of a metric of the group, by its peer, or the one of the group under the empty name. */
async function metric(sidecar: Sidecar, name: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  const lines = text.matchAll(
    new RegExp(`^evenkeel_${name}\\{upstream="u"(?:,peer="(.*?)",.*)?\\} (\\S+)$`, 'gm'),
  )
  return Object.fromEntries(Array.from(lines, ([, peer = '', value]) => [peer, Number(value)]))
}

async function one(sidecar: Sidecar, name: string): Promise<number> {
  return (await metric(sidecar, name))['']!
}

/** What `/explain` says of the shadow, as far as it is asked about here. */
interface Explained {
  readonly shadow?: {
    readonly method: string
    readonly same: number
    readonly picked: number
    readonly instead: number
    readonly peers: readonly { readonly share: number; readonly own: number }[]
  }
}

async function many(port: number, count: number, clients = 6): Promise<void> {
  const ask = async (_: unknown, i: number) => {
    using client = await dial(port)
    for (let sent = i; sent < count; sent += clients) await client.ask(`/${sent}`)
  }
  await Promise.all(Array.from({ length: clients }, ask))
}

test('least_time in the shadow of round robin says whom it would ask and what that would take', async () => {
  await using two = await backends([
    { body: 'A', after: 3 },
    // What a busy machine adds to both makes no great difference to this.
    { body: 'B', after: 60 },
  ])
  await using sidecar = await start(config(`${servers(two)} shadow least_time last_byte;`))
  await many(sidecar.port, 120)
  const from = { picks: await metric(sidecar, 'peer_shadow_picks_total') }
  const [a, b] = two.list.map(({ address }) => address) as [string, string]
  await many(sidecar.port, 100, 1)
  assert.deepEqual(
    two.list.map(({ requests }) => requests.length),
    [110, 110],
    'what is asked goes by turns',
  )
  const picks = await metric(sidecar, 'peer_shadow_picks_total')
  assert.equal(picks[a]! + picks[b]!, 220)
  // With nothing in flight its shares are inverse to the times: about nineteen twentieths.
  const part = (picks[a]! - from.picks[a]!) / 100
  assert.ok(part > 0.65 && part <= 1, `${part}`)
  const pairs = await one(sidecar, 'upstream_shadow_picks_total')
  assert.ok(pairs > 200 && pairs <= 220, `${pairs}`)
  assert.ok((await one(sidecar, 'upstream_shadow_same_total')) < 0.65 * pairs)
  const picked = (1000 * (await one(sidecar, 'upstream_picked_expected_seconds_total'))) / pairs
  const instead = (1000 * (await one(sidecar, 'upstream_shadow_expected_seconds_total'))) / pairs
  assert.ok(picked > 30 && instead < 0.9 * picked, `${picked} ${instead}`)
  const { shadow } = await sidecar.json<Explained>('/explain/u')
  assert.equal(shadow!.method, 'least_time last_byte')
  assert.ok(Math.abs(shadow!.picked - picked) < 0.01 && Math.abs(shadow!.instead - instead) < 0.01)
  assert.ok(shadow!.peers[0]!.share > 0.6)
  assert.equal(shadow!.peers[0]!.own, 0.5)
  const text = await (await fetch(`${sidecar.admin}/explain/u?format=text`)).text()
  assert.match(text, /\n {2}shadow least_time last_byte: 220 picks in all\n/)
  assert.match(text, /% fell on the same peer; by these averages \S+ ms instead of \S+ ms \(-\d+\.\d %\)\n/)
})

/** Requests that the shadow has in flight: its shares are even only where there are none. */
async function holdsNothing(sidecar: Sidecar, peers: number): Promise<boolean> {
  const { shadow } = await sidecar.json<Explained>('/explain/u')
  return shadow!.peers.every(({ share }) => Math.abs(share - 1 / peers) < 1e-4)
}

test('a shadow of several threads loses nothing over reloads, and holds nothing in the end', async () => {
  await using three = await backends([1, 5, 9].map((after) => ({ body: 'x', after })))
  const block = (count: number, tried: string) => {
    const some = three.list.slice(0, count).map(({ address }) => `server ${address};`)
    return config(`random; ${some.join(' ')} ${tried}`, 'worker_processes 3;')
  }
  await using sidecar = await start(block(3, 'shadow least_conn;'))
  const load = new SteadyLoad(sidecar.port, { clients: 8, every: 2, timed: false })
  let before = 0
  for (const count of [2, 3, 1, 3, 3]) {
    await sidecar.reload(block(count, 'shadow least_conn;'))
    const picks = await one(sidecar, 'upstream_shadow_picks_total')
    assert.ok(picks >= before, `${picks} after ${before}`)
    before = picks
  }
  assert.ok(before > 0)
  await sidecar.reload(block(3, ''))
  assert.deepEqual(await metric(sidecar, 'upstream_shadow_picks_total'), {})
  await sidecar.reload(block(3, 'shadow least_time header;'))
  await sidecar.reload(block(3, 'shadow least_conn;'))
  await eventually('it picks', async () => (await one(sidecar, 'upstream_shadow_picks_total')) > 20)
  await load.stop()
  assert.deepEqual(load.failures, [])
  await eventually('nothing is held', () => holdsNothing(sidecar, 3))
})

test('threads that die leave nothing in a shadow', async () => {
  await using three = await backends([3, 6, 9].map((after) => ({ body: 'x', after })))
  const text = config(`${servers(three)} shadow least_conn;`, 'worker_processes 4;')
  await using sidecar = await start(text, mortal)
  await dieInTurn(sidecar)
  await eventually('nothing is held', () => holdsNothing(sidecar, 3))
  await many(sidecar.port, 60)
  await eventually('nothing is held', () => holdsNothing(sidecar, 3))
})

test('a shadow that is the method in force is warned of, and picks like it', async () => {
  await using two = await backends([{ body: 'A' }, { body: 'B' }])
  await using sidecar = await start(config(`${servers(two, 'weight=3')} shadow round_robin;`))
  await many(sidecar.port, 40, 1)
  assert.match(sidecar.stderr, /\[warn\] .*"shadow" is the balancing method that the group has in /)
  const [a, b] = two.list.map(({ address }) => address) as [string, string]
  assert.deepEqual(await metric(sidecar, 'peer_shadow_picks_total'), { [a]: 30, [b]: 10 })
  const pairs = await one(sidecar, 'upstream_shadow_picks_total')
  assert.equal(await one(sidecar, 'upstream_shadow_same_total'), pairs)
})
