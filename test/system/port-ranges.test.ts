import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { ask, dial } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { start } from '../support/sidecar.ts'
import { udpClient } from '../support/udp-client.ts'
import { named } from '../support/udp-lab.ts'
import { udpPeer } from '../support/udp-peer.ts'

/** The first of so many ports in a row that are free. */
async function freeRow(length: number): Promise<number> {
  for (;;) {
    const first = await freePort()
    const taken = await Promise.all(
      Array.from({ length: length - 1 }, async (_, i) => {
        const server = createServer()
        try {
          server.listen({ port: first + 1 + i, host: '127.0.0.1', exclusive: true })
          await once(server, 'listening')
          return false
        } catch {
          return true
        } finally {
          server.close()
        }
      }),
    )
    if (!taken.includes(true)) return first
  }
}

test('each port of a range is an address of its server, and a reload takes and adds some', async () => {
  const first = await freeRow(4)
  const text = (range: string) => `worker_processes 2;
    http {
      access_log off;
      server { listen 127.0.0.1:PORT; listen 127.0.0.1:${range}; location / { return 200 $server_port; } }
      server { listen 127.0.0.1:${first + 1}; server_name own; location / { return 200 own; } }
    }`
  await using sidecar = await start(text(`${first}-${first + 2}`))
  const port = async (at: number, host = 'x') => (await ask(at, '/', { headers: { Host: host } })).text
  for (let at = first; at <= first + 2; at++) assert.equal(await port(at), `${at}`)
  assert.equal(await port(first + 1, 'own'), 'own')
  assert.equal(await port(first, 'own'), `${first}`)
  await assert.rejects(dial(first + 3))
  await sidecar.reload(text(`${first + 1}-${first + 3}`))
  for (let at = first + 1; at <= first + 3; at++) assert.equal(await port(at), `${at}`)
  await assert.rejects(dial(first))
})

test('sessions and datagrams come to each port of a range', async () => {
  const first = await freeRow(3)
  await using peer = await udpPeer(named('p'))
  await using _ = await start(`worker_processes 2;
    stream {
      access_log off;
      server { listen 127.0.0.1:PORT; listen 127.0.0.1:${first}-${first + 2}; return $server_port; }
      server { listen 127.0.0.1:${first}-${first + 2} udp; proxy_pass ${peer.address}; proxy_responses 1; }
    }`)
  for (let at = first; at <= first + 2; at++) {
    const client = await dial(at)
    assert.equal(`${await client.inbox.some()}`, `${at}`)
    client.close()
    await using datagrams = await udpClient(at)
    assert.equal(await datagrams.ask(`${at}`), `p${at}`)
  }
})
