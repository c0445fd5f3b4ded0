import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { retireLeaving } from '../../sidecar/build/groups.ts'
import { rebuild, refreshment } from '../../sidecar/build/refresh.ts'
import { prepare, type Running } from '../../sidecar/build/running.ts'
import { loadText } from '../../sidecar/config/load.ts'
import { type Membership, noMembership } from '../../sidecar/membership.ts'
import { latest } from '../../sidecar/proxy/pools.ts'

setFlagsFromString('--expose-gc')
// The collector, which has no other name without a flag of the command line.
const collect = runInNewContext('gc') as () => void

const text = `
  http {
    access_log off;
    upstream u { zone u 64k; least_time header; server 127.0.0.1:1; server 127.0.0.1:2; }
    upstream v { zone v 64k; queue 10; server 127.0.0.1:1; server 127.0.0.1:2; }
    server { listen 127.0.0.1:1; location / { proxy_pass http://u; } location /v { proxy_pass http://v; } }
  }`

test('what refreshes have replaced is forgotten, also while a request of long ago goes on', async () => {
  let weight = 1
  const membership: Membership = {
    ...noMembership,
    changed: (plans) =>
      plans.map((plan) => {
        if (plan.name !== 'v') return plan
        const wanted = plan.wanted.map((peer) => ({ ...peer, options: { ...peer.options, weight } }))
        return { ...plan, wanted }
      }),
  }
  const loaded = loadText(text, 'test.conf', 'nginx')
  const prepared = await prepare(loaded, { prefix: '/tmp', version: '0' }, undefined, 0, membership)
  const first = prepared.commit()
  const long = first.groups.get('v')!
  const refresh = (old: Running): Running => {
    weight += 1
    const next = rebuild(prepared.basis, refreshment(prepared.basis, membership, old).plans, old)
    retireLeaving(next)
    return next
  }
  const replaced: WeakRef<object>[] = []
  const refreshAll = () => {
    let running = refresh(first)
    for (let i = 0; i < 5; i++) {
      const group = running.groups.get('v')!
      replaced.push(new WeakRef(running), new WeakRef(running.router), new WeakRef(group))
      running = refresh(running)
    }
    return running
  }
  const running = refreshAll()
  // A reference is kept to the end of the turn in which it was made.
  for (let i = 0; i < 3; i++) {
    await turn()
    collect()
  }
  assert.equal(replaced.filter((each) => each.deref() !== undefined).length, 0)
  const now = running.groups.get('v')!
  assert.equal(now.plan.wanted[0]!.options.weight, 7)
  assert.equal(latest(long), now)
  assert.equal(running.groups.get('u'), first.groups.get('u'), 'what does not change goes on as it is')
})
