import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prepare } from '../../../sidecar/build/running.ts'
import { upstreamFacts } from '../../../sidecar/build/upstream-facts.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { type FollowedName, noMembership } from '../../../sidecar/membership.ts'

const options = { prefix: '/tmp', version: '0' }

async function factsOf(text: string, membership = noMembership) {
  const loaded = loadText(text, 'test.conf', 'nginx')
  const running = (await prepare(loaded, options, undefined, 0, membership)).commit()
  return new Map(upstreamFacts(running, []).map((facts) => [facts.upstream.name, facts]))
}

test('groups of http come first, those of stream by their prefix, each with the budgets of who sends to it', async () => {
  const facts = await factsOf(`
    stream {
      upstream app { server 127.0.0.1:1; }
      server { listen 127.0.0.1:7001; listen 127.0.0.1:7001 udp; proxy_pass app; proxy_next_upstream_budget 5% min=2 window=4s; }
      server { listen 127.0.0.1:7002; proxy_pass app; proxy_next_upstream_budget off; }
      server { listen 127.0.0.1:7003; proxy_pass 127.0.0.1:9; }
    }
    http {
      upstream app { server 127.0.0.1:2; }
      server { listen 127.0.0.1:7000; location /a { proxy_pass http://app; } }
    }`)
  assert.deepEqual([...facts.keys()], ['app', 'stream/app', 'stream/127.0.0.1:9'])
  const locations = (name: string) =>
    facts
      .get(name)!
      .budgets()
      .map(({ location, ratio }) => `${location} ${ratio}`)
  assert.deepEqual(locations('app'), ['/a 0.2'])
  assert.deepEqual(locations('stream/app'), ['127.0.0.1:7001 0.05', '127.0.0.1:7001 udp 0.05'])
  assert.deepEqual(locations('stream/127.0.0.1:9'), ['127.0.0.1:7003 0.2'])
})

test('followed names, and the services that peers come from, are told', async () => {
  const membership = {
    ...noMembership,
    resolved: ({ host, service, port }: FollowedName) => [
      {
        address: { kind: 'tcp' as const, host: '10.0.0.1', port: service ? 5432 : port },
        target: service ? `one.${host}` : undefined,
        weight: undefined,
        secondary: false,
      },
    ],
  }
  const facts = await factsOf(
    `http {
      resolver 127.0.0.1:1;
      upstream app {
        zone app 64k;
        server App.internal:81 resolve;
        server db.internal service=pg resolve;
        server 127.0.0.1:2;
      }
      server { listen 127.0.0.1:7000; location / { proxy_pass http://app; } }
    }`,
    membership,
  )
  const app = facts.get('app')!
  assert.deepEqual(app.followed, [
    { host: 'app.internal', service: undefined },
    { host: 'db.internal', service: 'pg' },
  ])
  assert.deepEqual(
    app.upstream.peers.map((peer) => [peer.name, peer.server, app.service(peer)]),
    [
      ['10.0.0.1:81', 'App.internal:81', undefined],
      ['10.0.0.1:5432', 'one.db.internal', 'pg'],
      ['127.0.0.1:2', '127.0.0.1:2', undefined],
    ],
  )
})

test('limits of a queue and the rule of a switch are told in numbers', async () => {
  const facts = await factsOf(`
    http {
      upstream a { zone a 64k; server 127.0.0.1:1; queue 7; }
      upstream b { zone b 64k; server 127.0.0.1:1; server 127.0.0.1:2 backup; queue 3 timeout=500ms; backup_switch permanent; }
      server { listen 127.0.0.1:7000; location / { proxy_pass http://a; } location /b { proxy_pass http://b; } }
    }`)
  const { a, b } = Object.fromEntries(facts)
  assert.deepEqual(
    [a!.queue, a!.backupSwitch, a!.sticky],
    [{ number: 7, timeout: 60_000 }, undefined, undefined],
  )
  assert.deepEqual([b!.queue, b!.backupSwitch], [{ number: 3, timeout: 500 }, { after: undefined }])
})
