import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, dial } from '../../support/client.ts'
import { start } from '../../support/sidecar.ts'
import { echoPeer } from '../../support/tcp-peer.ts'

/** Addresses that a reload moves from `http` to `stream`, and back. */

const request = Client.bytes('/', { headers: { connection: 'close' } })

/** What a client is told first that asks as one of HTTP. */
async function told(where: number | string): Promise<string> {
  const client = await dial(where)
  await client.write(request)
  const text = `${await client.inbox.some()}`
  client.close()
  return text.slice(0, 12)
}

for (const threads of [1, 2]) {
  for (const kind of ['tcp', 'unix'] as const) {
    test(`an address goes from http to stream and back, and no client is lost: ${kind}, ${threads} thread(s)`, async () => {
      await using echo = await echoPeer()
      // The socket's path is relative to nothing that the test may choose but the folder of the configuration.
      const path = `/tmp/evenkeel-sides-${process.pid}-${threads}.sock`
      const listen = kind === 'tcp' ? '127.0.0.1:PORT' : `unix:${path}`
      const configuration = (sides: string) => `
        # PORT
        worker_processes ${threads};
        error_log stderr info;
        http {
          access_log off;
          upstream web { server 127.0.0.1:PORT2; }
          server { listen 127.0.0.1:PORT2; return 204; }
          ${sides === 'http' ? `server { listen ${listen}; location / { proxy_pass http://web; } }` : ''}
        }
        stream {
          access_log off;
          server { listen 127.0.0.1:PORT3; return other; }
          ${sides === 'stream' ? `server { listen ${listen}; proxy_pass ${echo.address}; }` : ''}
        }`
      await using sidecar = await start(configuration('http'))
      const where = kind === 'tcp' ? sidecar.port : path
      const http = await dial(where)
      assert.equal((await http.ask('/')).status, 204)
      const load = { over: false, seen: new Map<string, number>() }
      const clients = [1, 2, 3].map(async () => {
        while (!load.over) {
          const text = await told(where)
          load.seen.set(text, (load.seen.get(text) ?? 0) + 1)
        }
      })
      await sidecar.reload(configuration('stream'))
      assert.equal(await told(where), 'GET / HTTP/1')
      // A connection that was there before goes on as one of HTTP, to its next answer.
      assert.equal((await http.ask('/')).status, 204)
      assert.equal(await http.closed, 'fin')
      http.close()
      const session = await dial(where)
      await session.write('hello')
      assert.equal(`${await session.inbox.take(5)}`, 'hello')
      await sidecar.reload(configuration('http'))
      assert.equal(await told(where), 'HTTP/1.1 204')
      await sidecar.reload(configuration('stream'))
      assert.equal(await told(where), 'GET / HTTP/1')
      await sidecar.reload(configuration('http'))
      await session.write('again')
      assert.equal(`${await session.inbox.take(5)}`, 'again')
      session.end()
      assert.equal(await session.closed, 'fin')
      session.close()
      load.over = true
      await Promise.all(clients)
      assert.deepEqual([...load.seen.keys()].sort(), ['GET / HTTP/1', 'HTTP/1.1 204'])
      // And it can be given up like any other.
      await sidecar.reload(configuration('none'))
      await assert.rejects(dial(where))
    })
  }
}
