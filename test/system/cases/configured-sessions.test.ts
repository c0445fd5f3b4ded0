// Groups of nginx's and Angie's guides, unchanged but for the addresses and a line more: what binds sessions to peers,
// what keeps requests with the backups, and what lets them wait.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Backends } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { at, inFront, letters, peers, port } from '../../support/configured.ts'
import { lab } from '../../support/invariants.ts'
import { Gate, wait } from '../../support/queued.ts'
import { seed } from '../../support/seed.ts'

/** The group with a line more at its end. */
function withLine(block: string, line: string): string {
  return block.trim().replace(/\n}$/, `\n    ${line}\n}`)
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

test('a cookie keeps a client with its peer, whatever the method, also while that drains', async () => {
  // A method that stands after the line leaves it in force.
  const group = (await seed('random-two', at)).replace('random two;', 'sticky cookie srv_id; random two;')
  const draining = group.replace(`127.0.0.2:${port};`, `127.0.0.2:${port} drain;`)
  for (const block of [group, draining]) {
    await using three = await peers(3)
    await using front = await inFront(block, three)
    const ids = [1, 2, 3].map((i) => md5(`127.0.0.${i}:${port}`))
    const first = await ask(front.port, '/')
    assert.equal(first.header('set-cookie'), `srv_id=${ids['ABC'.indexOf(first.text)]}; path=/`)
    for (const [i, id] of ids.entries()) {
      const said = new Set<string>()
      for (let n = 0; n < 5; n++) {
        const reply = await ask(front.port, '/', { headers: { Cookie: `a=b; srv_id=${id}` } })
        assert.equal(reply.header('set-cookie'), `srv_id=${id}; path=/`)
        said.add(reply.text)
      }
      assert.deepEqual([...said], ['ABC'[i]])
    }
    assert.match(front.sidecar.stderr, /\[warn\] load balancing method redefined in .*:\d+\n/)
    const strangers = await letters(front, 30)
    assert.equal(strangers.includes('B'), block === group, strangers)
    await front.settle(46)
  }
})

test('requests and connections stay with the backups until the time of the switch is over', async () => {
  await using three = await peers(2)
  await three.add({ body: 'X' }, { host: '127.0.0.51', port })
  const [a, b] = three.list
  // The guide leaves ten seconds to a peer that has failed.
  const guide = (await seed('backup', at)).replace(/([12]:\d+);/g, '$1 fail_timeout=1s;')
  const named = (name: string, line: string) =>
    withLine(guide, line)
      .replace('upstream backend', `upstream ${name}`)
      .replace('zone backend', `zone ${name}`)
  const groups = [
    named('back', ''),
    named('stay', 'backup_switch permanent=2m;'),
    named('soon', 'backup_switch permanent=1s;'),
  ]
  const location = 'proxy_next_upstream error timeout http_503;'
  const locations = ['back', 'stay', 'soon'].map((name) => `location /${name} { proxy_pass http://${name}; }`)
  const sessions = named('session', 'backup_switch permanent=2m;')
  await using front = await lab(
    `${groups.join('\n')} server { listen 127.0.0.1:PORT; ${location} ${locations.join(' ')} }`,
    three.list,
    { main: `stream { ${sessions} server { listen 127.0.0.1:PORT2; proxy_pass session; } }` },
  )
  const connection = async () => {
    using client = await dial(front.sidecar.ports['PORT2']!)
    return (await client.ask('/')).text
  }
  const told = async () => {
    const replies = [
      await ask(front.port, '/back'),
      await ask(front.port, '/stay'),
      await ask(front.port, '/soon'),
    ]
    return [...replies.map((reply) => reply.text), await connection()].join('')
  }
  assert.match(await told(), /^[AB]{4}$/)
  await Promise.all([a!.stop(), b!.stop()])
  assert.equal(await told(), 'XXXX')
  const again = new Backends()
  await again.add({ body: 'A' }, { host: '127.0.0.1', port })
  await again.add({ body: 'B' }, { host: '127.0.0.2', port })
  try {
    await sleep(1200)
    assert.match(await told(), /^[AB]X[AB]X$/)
    await front.settle(undefined, { seen: false })
  } finally {
    await again[Symbol.asyncDispose]()
  }
})

test('a request waits where every peer of the group is full', async () => {
  const gate = new Gate()
  await using two = new Backends()
  for (const host of ['127.0.0.1', '127.0.0.2']) await two.add(gate.script, { host, port })
  const full = (await seed('zone', at)).replace(/(:\d+);/g, '$1 max_conns=1;')
  // One thread: each has a queue of its own.
  await using front = await lab(
    `${withLine(full, 'queue 10 timeout=5s;')} server { listen 127.0.0.1:PORT; location / { proxy_pass http://backend; } }`,
    two.list,
  )
  const replies = ['/1', '/2', '/3'].map((target) => ask(front.port, target))
  await wait(front.sidecar, 1, 'backend')
  gate.open()
  for (const [i, reply] of (await Promise.all(replies)).entries()) assert.equal(reply.text, `/${i + 1}`)
  await front.settle(3)
})
