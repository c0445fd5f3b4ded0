import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, dial } from '../../support/client.ts'
import { start } from '../../support/sidecar.ts'
import { tcpPeer } from '../../support/tcp-peer.ts'

const all = 64 * 1024 * 1024

/** Resident memory, bytes. */
async function resident(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1])
}

/** Writes it all as fast as it is taken, and then a FIN. @returns how far it has got, and its sum */
function flood(from: Client): { sent: number; readonly sum: Promise<string> } {
  const hash = createHash('sha1')
  const piece = randomBytes(1024 * 1024)
  const state = { sent: 0, sum: Promise.resolve('') }
  state.sum = (async () => {
    for (let at = 0; at < all; at += piece.length) {
      piece.writeUInt32LE(at)
      hash.update(piece)
      await from.write(piece)
      state.sent += piece.length
    }
    from.end()
    return hash.digest('hex')
  })()
  return state
}

async function drain(to: Client): Promise<string> {
  const hash = createHash('sha1')
  for (;;) {
    const some = await to.inbox.some()
    if (some === undefined) return hash.digest('hex')
    hash.update(some)
  }
}

test('whoever reads nothing holds up who sends to it, and nobody else, and then gets every byte', async () => {
  await using peer = await tcpPeer()
  await using sidecar = await start(`
    worker_processes 1;
    stream { proxy_half_close on; server { listen 127.0.0.1:PORT; proxy_pass ${peer.address}; } }`)
  const before = await resident(sidecar.pid)
  const up = await dial(sidecar.port)
  const upAt = await peer.next()
  const second = await dial(sidecar.port)
  const secondAt = await peer.next()
  // One session whose peer stands still, and one whose client does.
  upAt.inbox.pause()
  second.inbox.pause()
  const [there, back] = [flood(up), flood(secondAt)]
  let last = -1
  while (last !== there.sent + back.sent) {
    last = there.sent + back.sent
    await wait(200)
  }
  assert.ok(there.sent < all / 2 && back.sent < all / 2, `${there.sent} and ${back.sent} bytes were taken`)
  const grown = (await resident(sidecar.pid)) - before
  assert.ok(grown < 32 * 1024 * 1024, `${grown} bytes`)
  // The way back is not held up by that.
  await upAt.write('still here')
  assert.equal(`${await up.inbox.take(10)}`, 'still here')
  await second.write('here too')
  assert.equal(`${await secondAt.inbox.take(8)}`, 'here too')
  assert.deepEqual(await Promise.all([drain(upAt), drain(second)]), await Promise.all([there.sum, back.sum]))
  upAt.end()
  second.end()
  assert.equal(await up.closed, 'fin')
})
