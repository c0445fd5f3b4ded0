import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { echo } from '../support/backend.ts'
import { dial } from '../support/client.ts'
import { followed, hasMembers, neighbours, peersOf } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { start } from '../support/sidecar.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

for (const threads of [1, 2]) {
  test(`with ${threads} threads, no request is lost while peers come and go under load`, async () => {
    const slow = (x: Parameters<typeof echo>[0]) => x.reply({ body: 'x', after: 5 })
    await using peers = await neighbours(4, [slow, slow, slow, slow])
    const sets = [['1', '2'], ['2', '3'], ['3', '4', '1'], ['4'], ['1', '2', '3', '4']]
    const addresses = (numbers: readonly string[]) => numbers.map((n) => `127.0.0.${n}`)
    await dns.has('churn.example', addresses(['1']))
    await using sidecar = await start(
      followed(dns, `churn.example:${peers.port} resolve max_fails=1`, {
        group: 'least_time header;',
        http: 'keepalive_requests 1000000;',
        main: `worker_processes ${threads};`,
      }),
    )
    let over = false
    const bad: string[] = []
    let good = 0
    const asking = Array.from({ length: 8 }, async () => {
      const client = await dial(sidecar.port)
      while (!over) {
        const reply = await client.ask('/')
        if (reply.status === 200) good += 1
        else bad.push(`${reply.status}`)
      }
      client.close()
    })
    for (const set of sets) {
      await dns.has('churn.example', addresses(set))
      await hasMembers(sidecar, addresses(set.toSorted()).join(' '))
      await sleep(30)
    }
    over = true
    await Promise.all(asking)
    assert.deepEqual(bad, [])
    assert.ok(good > 200, `${good} requests`)
    for (const [name, { health }] of Object.entries(await peersOf(sidecar)))
      assert.equal(health.fails, 0, name)
  })
}
