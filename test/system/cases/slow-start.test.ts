import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, Backends, type Exchange } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { eventually, lab } from '../../support/invariants.ts'

const rampMs = 1500
const windowMs = 300

const fails = (x: Exchange) => x.reset()

test('peers that come back one after the other climb under both methods, and none is flooded or left out', async () => {
  await using four = new Backends()
  for (const letter of 'abcd') await four.add({ body: letter, after: 4 })
  const [a, b, c, d] = four.list as [Backend, Backend, Backend, Backend]
  const back = `max_fails=1 fail_timeout=1s slow_start=${rampMs}ms`
  const servers = `server ${a.address}; server ${b.address}; server ${c.address} ${back}; server ${d.address} ${back};`
  await using front = await lab(
    `upstream turns { zone turns 64k; ${servers} }
     upstream conns { zone conns 64k; least_conn; ${servers} }
     proxy_next_upstream_budget off;
     keepalive_requests 100000;
     server { listen 127.0.0.1:PORT;
       location /turns { proxy_pass http://turns; } location /conns { proxy_pass http://conns; } }`,
    four.list,
  )
  let over = false
  let asked = 0
  const load = async (target: string) => {
    using client = await dial(front.port)
    while (!over) {
      assert.equal((await client.ask(target)).status, 200)
      asked += 1
    }
  }
  const running = Promise.all(
    ['/turns', '/turns', '/conns', '/conns', '/conns', '/conns', '/conns'].map(load),
  )
  running.catch(() => {})

  const setAside = async (peer: Backend) => {
    const { script } = peer
    peer.script = fails
    await eventually('both groups have set it aside', async () => {
      const states = await Promise.all(
        ['turns', 'conns'].map(async (group) => (await front.peers(group))[peer.address]!.state),
      )
      return states.every((state) => state === 'unavailable')
    })
    peer.script = script
    return performance.now()
  }
  const outAt = await setAside(c)
  await sleep(Math.max(0, outAt + rampMs / 4 - performance.now()))
  const lastOut = await setAside(d)
  await sleep(lastOut + 1000 + rampMs + 2 * windowMs - performance.now())
  over = true
  await running

  for (const target of ['/turns', '/conns']) {
    const given = four.list.flatMap((peer, i) =>
      peer.requests.filter((x) => x.target === target).map(({ at }) => ({ at, name: 'abcd'[i]! })),
    )
    given.sort((one, other) => one.at - other.at)
    // The first after a pause: what was on its way as the peer was set aside may arrive later than that.
    const upAt = (name: string, from: number) => {
      const its = given.filter((one) => one.name === name)
      return its.find(({ at }, i) => at > from && at - its[i - 1]!.at > rampMs / 4)!.at
    }
    const up: Record<string, number> = { c: upAt('c', outAt), d: upAt('d', lastOut) }
    const part = (name: string, at: number) => {
      const since = up[name]
      return since === undefined ? 1 : Math.max(0, Math.min(1, (at - since) / rampMs))
    }
    for (const name of 'cd') {
      const shares: number[] = []
      for (let from = up[name]!; from < up[name]! + rampMs; from += windowMs) {
        const span = given.filter(({ at }) => at >= from && at < from + windowMs)
        // A machine that is held up says nothing.
        if (span.length < 20) continue
        for (const one of 'abcd') {
          const count = span.filter((each) => each.name === one).length
          const fair = span.reduce((sum, { at }) => {
            const total = [...'abcd'].reduce((all, each) => all + part(each, at), 0)
            return sum + part(one, at) / total
          }, 0)
          const told = `${target}: ${one} got ${count} of ${span.length}, fair are ${fair.toFixed(1)}`
          // By a manual clock it is 1.3 times at most; here the machine has a say.
          assert.ok(count <= 1.6 * fair + 8, told)
          if (fair >= 4) assert.ok(count > 0, told)
          if (one === name) shares.push(count / span.length)
        }
      }
      const told = `${target}: shares of ${name}: ${shares.map((share) => share.toFixed(3)).join(' ')}`
      assert.ok(shares.length >= 2 && shares.at(-1)! > shares[0]!, told)
      for (let i = 2; i < shares.length; i++) assert.ok(shares[i]! > shares[i - 2]! - 0.05, told)
    }
    const last = given.filter(({ at }) => at > up['d']! + rampMs)
    for (const name of 'abcd') {
      const share = last.filter((one) => one.name === name).length / last.length
      assert.ok(Math.abs(share - 0.25) < 0.08, `${target}: ${name} has ${share} in the end`)
    }
  }
  // A connection that is reset as it is used again is seen by the peer, and asked again without being counted.
  await front.settle(asked, { seen: false })
})
