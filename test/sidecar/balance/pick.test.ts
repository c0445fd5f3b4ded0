import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { exclusion, tries } from '../../../sidecar/balance/eligible.ts'
import { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'

function roundRobin(sketches: readonly PeerSketch[], backups: readonly PeerSketch[] = []) {
  const upstream = group(sketches, { backups })
  const balancer = new RoundRobin(upstream.peers)
  return new Group(upstream, balancer, backups.length > 0 ? new RoundRobin(upstream.backups) : undefined)
}

test('reserves what it picks', () => {
  const balancing = roundRobin([1, 1])
  const dice = env()
  const attempt = new Selection(balancing, new Call(), dice).next()!
  const { conns, selected, checkedAt } = balancing.upstream.zone.peers
  assert.equal(attempt.peer?.name, 'a')
  assert.equal(attempt.address, 'a')
  assert.equal(attempt.pick, 'round_robin')
  assert.equal(attempt.startedAt, dice.now())
  assert.deepEqual([conns[0], selected[0], checkedAt[0]], [1, 1, dice.now()])
  assert.deepEqual([conns[1], selected[1]], [0, 0])
})

test('what a denial leaves open is told: a limit, or a lease below it', () => {
  const common: PeerSketch = { max_conns: 4, max_conns_scope: 'fleet' }
  const detail = (sketches: readonly PeerSketch[], conns: number, lease: number) => {
    const balancing = roundRobin(sketches)
    const { peers } = balancing.upstream.zone
    peers.conns.fill(conns)
    peers.lease.fill(lease)
    const selection = new Selection(balancing, new Call(), env())
    assert.equal(selection.next(), undefined)
    return selection.denialDetail
  }
  assert.equal(detail([{ max_conns: 4 }], 4, 0), 'max_conns reached')
  assert.equal(detail([common], 4, 0), 'max_conns reached')
  assert.equal(detail([common], 4, 5), 'max_conns reached')
  assert.equal(detail([common], 1, 2), 'max_conns reached by the lease of the fleet')
  assert.equal(detail([{ max_conns: 1 }, common], 1, 2), 'max_conns reached by the lease of the fleet')
  assert.equal(detail([{ down: true }], 0, 0), '')
})

test('moves to the backups for the rest of the request', () => {
  const balancing = roundRobin([1, 1], [1, 1])
  const { conns } = balancing.upstream.zone.peers
  const dice = env()
  const selection = new Selection(balancing, new Call(), dice)
  const [first, second, third] = [selection.next()!, selection.next()!, selection.next()!]
  assert.deepEqual(
    [first, second, third].map(({ peer, pick }) => `${peer!.name} ${pick}`),
    ['a round_robin', 'b round_robin', 'c backup'],
  )
  conns.fill(0)
  assert.equal(selection.next()?.peer?.name, 'd')
  assert.equal(selection.next(), undefined)
  // The next request begins at the primaries again.
  assert.equal(new Selection(balancing, new Call(), dice).next()?.pick, 'round_robin')
})

test('reserves the same peer once more without picking', () => {
  const balancing = roundRobin([1, 1])
  const selection = new Selection(balancing, new Call(), env())
  const first = selection.next()!
  const again = selection.reserve(first.peer!, first.pick)
  assert.equal(again.peer, first.peer)
  assert.equal(balancing.upstream.zone.peers.conns[0], 2)
  assert.equal(selection.next()?.peer?.name, 'b')
  assert.equal(selection.next(), undefined)
})

test('counts a reserved peer as tried', () => {
  const selection = new Selection(roundRobin([1, 1]), new Call(), env())
  selection.reserve(selection.group.upstream.peers[1]!, 'sticky')
  assert.equal(selection.next()?.peer?.name, 'a')
  assert.equal(selection.next(), undefined)
})

test('asks a lone server again and again, but not beyond max_conns', () => {
  const selection = new Selection(roundRobin([{ max_conns: 2 }]), new Call(), env())
  assert.equal(selection.next()?.pick, 'single')
  assert.equal(selection.next()?.pick, 'single')
  assert.equal(selection.next(), undefined)
  assert.equal(selection.denial, 'overflow')
})

test('does not count a lone primary as single where there is a backup', () => {
  const balancing = roundRobin([1], [1])
  const selection = new Selection(balancing, new Call(), env())
  assert.equal(selection.next()?.pick, 'round_robin')
  assert.equal(selection.next()?.pick, 'backup')
  assert.equal(selection.next(), undefined)
})

test('lets a failed peer be asked once when its time has passed, and others wait again', () => {
  const balancing = roundRobin([1, 1])
  const { fails, checkedAt } = balancing.upstream.zone.peers
  const dice = env()
  fails[0] = 1
  checkedAt[0] = dice.now()
  const next = () => new Selection(balancing, new Call(), dice).next()!.peer!.name
  dice.clock.move(9999)
  assert.deepEqual([next(), next()], ['b', 'b'])
  dice.clock.move(1)
  assert.deepEqual([next(), next(), next()].sort(), ['a', 'b', 'b'])
})

test('tells a group that is full from one where nobody lives', () => {
  const dice = env()
  const denial = (sketches: readonly PeerSketch[], backups: readonly PeerSketch[] = []) => {
    const balancing = roundRobin(sketches, backups)
    const { peers, backups: others, zone } = balancing.upstream
    for (const { index, options } of [...peers, ...others])
      if (options.max_conns > 0) zone.peers.conns[index] = 1
    const selection = new Selection(balancing, new Call(), dice)
    assert.equal(selection.next(), undefined)
    return selection.denial
  }
  const full = { max_conns: 1 }
  const down = { down: true }
  assert.equal(denial([full, full]), 'overflow')
  assert.equal(denial([down, full]), 'overflow')
  assert.equal(denial([down, down], [full]), 'overflow')
  assert.equal(denial([down, down]), 'no_live')
  assert.equal(denial([down], [down]), 'no_live')
})

test('says why a peer is out, for everybody and for a request', () => {
  const balancing = roundRobin([{ down: true }, { max_conns: 1 }, 1, 1])
  const { upstream } = balancing
  const [a, b, c, d] = upstream.peers
  const dice = env()
  upstream.zone.peers.conns[1] = 1
  upstream.zone.peers.fails[2] = 1
  upstream.zone.peers.checkedAt[2] = dice.now()
  const selection = new Selection(balancing, new Call(), dice)
  selection.next()
  const words = [a, b, c, d].map((peer) => exclusion(peer!, upstream, dice.now(), selection))
  assert.deepEqual(words, ['down', 'busy', 'unavailable', 'tried'])
  assert.equal(exclusion(d!, upstream, dice.now()), undefined)
})

test('allows as many tries as there are peers that are not down', () => {
  assert.equal(tries(roundRobin([1, { down: true }, 1], [1, { down: true }])), 3)
})

test('counts picks that were made without an average, by exploration or by the floor', () => {
  const upstream = group([1, 1, 1])
  const words = ['unmeasured', 'explored', 'floor']
  let turn = 0
  const balancer = {
    pick: (asked: { pick: string }) => {
      asked.pick = words[turn]!
      return upstream.peers[turn++]
    },
    shares: () => [],
  }
  const selection = new Selection(new Group(upstream, balancer, undefined), new Call(), env())
  const picks = Array.from({ length: 3 }, () => selection.next()!.pick)
  assert.deepEqual(picks, words)
  const { explored, unmeasured } = upstream.zone.peers
  assert.deepEqual([...explored.slice(0, 3)], [0, 1, 1])
  assert.deepEqual([...unmeasured.slice(0, 3)], [1, 0, 0])
})
