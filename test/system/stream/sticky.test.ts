// Sessions and switches of groups that carry bytes.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Client, dial } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { udpClient } from '../../support/udp-client.ts'
import { named as namedUdp } from '../../support/udp-lab.ts'
import { udpPeer } from '../../support/udp-peer.ts'

/** A peer that says its letter, and ends when its client does. */
const named = (letter: string, port?: number): Promise<TcpPeer> =>
  tcpPeer(({ socket }) => {
    socket.write(letter)
    socket.on('end', () => socket.end())
    socket.resume()
  }, port)

/** Connects, and says who answers; empty where nobody does. */
async function who(
  sidecar: Sidecar,
  word: string,
  from: string,
): Promise<{ letter: string; client: Client }> {
  const client = await dial(sidecar.ports[word]!, from)
  const letter = await client.inbox.take(1).then(
    (byte) => String(byte ?? ''),
    () => '',
  )
  return { letter, client }
}

async function letter(sidecar: Sidecar, word: string, from: string): Promise<string> {
  const { letter, client } = await who(sidecar, word, from)
  client.end()
  await client.closed
  return letter
}

test('sessions of bytes are bound by a variable, or learnt at the connection or at the end', async () => {
  await using a = await named('a')
  await using b = await named('b')
  const dead = `127.0.0.1:${await freePort()}`
  const servers = `server ${a.address} sid=A; server ${b.address} sid=B;`
  const learn = (zone: string, more = '') =>
    `sticky learn zone=${zone}:64k create=$remote_addr lookup=$remote_addr ${more};`
  await using sidecar = await start(`worker_processes 2;
    stream {
      log_format bound '$remote_addr $upstream_sticky_status';
      access_log bound.log bound;
      map $remote_addr $sid { 127.0.0.2 B; 127.0.0.3 X; 127.0.0.4 D; default ""; }
      upstream route { zone route 64k; sticky route $sid; ${servers} server ${dead} sid=D max_fails=0; }
      upstream strict { zone strict 64k; sticky route $sid; sticky_strict on; ${servers} server ${dead} sid=D max_fails=0; }
      upstream early { zone early 64k; ${learn('early_ids', 'connect')} ${servers} }
      upstream late { zone late 64k; ${learn('late_ids')} ${servers} }
      server { listen 127.0.0.1:PORT; proxy_pass route; }
      server { listen 127.0.0.1:PORT2; proxy_pass strict; }
      server { listen 127.0.0.1:PORT3; proxy_pass early; }
      server { listen 127.0.0.1:PORT4; proxy_pass late; }
    }`)
  for (let i = 0; i < 3; i++) assert.equal(await letter(sidecar, 'PORT', '127.0.0.2'), 'b')
  assert.match(await letter(sidecar, 'PORT', '127.0.0.1'), /[ab]/)
  assert.match(await letter(sidecar, 'PORT', '127.0.0.3'), /[ab]/)
  assert.match(await letter(sidecar, 'PORT', '127.0.0.4'), /[ab]/)
  assert.equal(await letter(sidecar, 'PORT2', '127.0.0.2'), 'b')
  assert.equal(await letter(sidecar, 'PORT2', '127.0.0.3'), '')
  assert.equal(await letter(sidecar, 'PORT2', '127.0.0.4'), '')
  const log = () => readFile(join(sidecar.folder, 'bound.log'), 'latin1')
  await eventually('all is logged', async () => (await log()).split('\n').length === 10)
  const said = (await log()).split('\n')
  assert.equal(said.filter((line) => line === '127.0.0.2 HIT').length, 4)
  for (const line of ['127.0.0.1 NEW', '127.0.0.3 MISS', '127.0.0.4 HIT, MISS'])
    assert.ok(said.includes(line), line)
  assert.equal(said.filter((line) => line === '127.0.0.4 HIT, MISS').length, 2)

  // At the connection: the next one of the client is bound while the first is open.
  for (const [word, early] of [
    ['PORT3', true],
    ['PORT4', false],
  ] as const) {
    const first = await who(sidecar, word, '127.0.0.5')
    // Somebody else takes the next turn of each list.
    const others: Client[] = []
    const seen = new Set<string>()
    for (let i = 0; i < 6; i++) {
      const other = await who(sidecar, word, '127.0.0.5')
      seen.add(other.letter)
      others.push(other.client)
    }
    assert.deepEqual([...seen].sort(), early ? [first.letter] : ['a', 'b'])
    for (const client of [...others, first.client]) client.end()
    await Promise.all([...others, first.client].map(({ closed }) => closed))
  }
  const last = await letter(sidecar, 'PORT4', '127.0.0.5')
  for (let i = 0; i < 4; i++) assert.equal(await letter(sidecar, 'PORT4', '127.0.0.5'), last)
  await sidecar.reload()
  assert.equal(await letter(sidecar, 'PORT4', '127.0.0.5'), last)
})

test('with connect, datagrams that come back bind a session while it goes on', async () => {
  await using a = await udpPeer(namedUdp('a'))
  await using b = await udpPeer(namedUdp('b'))
  await using sidecar = await start(`worker_processes 2;
    stream {
      access_log off;
      upstream u { zone u 64k; server ${a.address}; server ${b.address};
        sticky learn zone=ids:64k create=$remote_addr lookup=$remote_addr connect; }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; proxy_timeout 1s; }
    }`)
  await using first = await udpClient(sidecar.port)
  const letter = (await first.ask('?'))[0]
  for (let i = 0; i < 4; i++) {
    await using other = await udpClient(sidecar.port)
    assert.equal((await other.ask('?'))[0], letter)
  }
})

test('sessions of bytes stay with the backups, and come back where a connection to a primary is made', async () => {
  const port = await freePort()
  await using backup = await named('b')
  await using sidecar = await start(`worker_processes 2;
    error_log stderr notice;
    stream {
      access_log off;
      upstream u { zone u 64k; server 127.0.0.1:${port} max_fails=0; server ${backup.address} backup; backup_switch permanent=400ms; }
      server { listen 127.0.0.1:PORT; proxy_pass u; proxy_next_upstream_budget off; }
    }`)
  const next = () => letter(sidecar, 'PORT', '127.0.0.1')
  assert.equal(await next(), 'b')
  await using _primary = await named('p', port)
  assert.equal(await next(), 'b')
  // It is enough that the connection is there: that session goes on.
  const held: Client[] = []
  await eventually('the primaries are tried', async () => {
    const { letter, client } = await who(sidecar, 'PORT', '127.0.0.1')
    held.push(client)
    return letter === 'p'
  })
  for (let i = 0; i < 4; i++) assert.equal(await next(), 'p')
  for (const client of held) client.close()
  assert.match(sidecar.stderr, /\[warn\] [\d#]+: upstream "stream\/u" switched to its backups/)
  assert.match(sidecar.stderr, /\[notice\] [\d#]+: upstream "stream\/u" switched to its primaries/)
})
