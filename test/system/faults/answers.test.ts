import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, Client, dial } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'

/* Peers that answer at the wrong time, twice, unasked, slowly, or in no language that is HTTP/1.1. */

let peer: Backend
let front: Lab

before(async () => {
  peer = await backend()
  front = await lab(
    `upstream up { server ${peer.address} max_fails=0; keepalive 4; }
     proxy_read_timeout 500ms; proxy_send_timeout 500ms; client_max_body_size 0; proxy_buffer_size 4k;
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://up; }
       location /direct { proxy_pass http://up; proxy_request_buffering off; } }`,
    [peer],
  )
})

after(async () => {
  await front?.sidecar.stop()
  await peer?.stop()
})

beforeEach(async () => {
  peer.cut()
  await eventually('no connection is kept', () => peer.open === 0)
  await front.begin()
})

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const big = Buffer.alloc(3 << 20, 'x')
/** More than the buffers of the system take while a peer does not read. */
const huge = Buffer.alloc(12 << 20)

/** What a peer does with the rest of a request that it has answered already. */
const afterwards: Record<string, (x: Exchange) => Promise<void>> = {
  'reads on': async (x) => {
    await x.body()
  },
  'reads nothing': async (x) => {
    x.inbox.pause()
    await x.gone
  },
  closes: async (x) => {
    x.end()
    await x.body()
  },
}

for (const [then, rest] of Object.entries(afterwards)) {
  test(`a peer that answers before it has read the request and ${then} is heard, and the next request is not lost`, async () => {
    peer.script = async (x) => {
      if (x.target.endsWith('/next')) return x.reply({ body: 'next' })
      await x.send(ok)
      x.done()
      await rest(x)
    }
    let asked = 0
    for (const target of ['/', '/direct']) {
      for (const body of then === 'reads nothing' ? [huge] : [big, [big]]) {
        // All of it is on its way before anybody reads the answer.
        const client = await dial(front.port)
        client.socket.pause()
        void client.write(Client.bytes(target, { method: 'POST', body }))
        const reply = await client.reply('POST')
        assert.equal(reply.text, 'ok', `${target} ${then}`)
        const { connection } = peer.requests.at(-1)!
        client.close()
        assert.equal((await ask(front.port, `${target}/next`)).text, 'next')
        // One that has the whole request may be asked again.
        if (then !== 'reads on') assert.notEqual(peer.requests.at(-1)!.connection, connection)
        asked += 2
      }
    }
    await front.settle(asked, { seen: false })
  })
}

test('a peer that resets after its early answer has answered, or is said to have been reset: nothing hangs', async () => {
  peer.script = async (x) => {
    await x.send(ok)
    x.reset()
  }
  for (const body of [big, [big], 'small']) {
    const reply = await ask(front.port, '/direct', { method: 'POST', body })
    assert.ok(reply.status === 200 || reply.status === 502, String(reply.status))
  }
  await front.settle(3, { seen: false })
})

for (const [when, script] of Object.entries({
  'in the same piece': async (x: Exchange) => {
    await x.body()
    await x.send(ok + ok)
  },
  'right after the first': async (x: Exchange) => {
    await x.body()
    await x.send(ok)
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  },
  'as nobody asks anything': async (x: Exchange) => {
    await x.body()
    await x.send(ok)
    setTimeout(() => void x.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'), 30)
  },
  'and more than its length says': async (x: Exchange) => {
    await x.body()
    await x.send(`${ok}, and more`)
  },
  'though there is nothing to come': async (x: Exchange) => {
    await x.body()
    await x.send('HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  },
  'after its last chunk': async (x: Exchange) => {
    await x.body()
    await x.send(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
    )
  },
})) {
  test(`a peer that answers twice, ${when}, is heard once`, async () => {
    peer.script = script
    using client = await dial(front.port)
    for (let i = 0; i < 4; i++) {
      const reply = await client.ask(`/${i}`)
      assert.ok(reply.text === 'ok' || reply.status === 204, reply.text)
      await peer.requests.at(-1)!.gone
    }
    assert.equal(client.inbox.unread.length, 0)
    await front.settle(4)
  })
}

test('an idle connection that a peer resets, or sends a byte on, is closed and nobody notices', async () => {
  peer.script = (x) => x.reply({ body: 'ok' })
  using client = await dial(front.port)
  let asked = 0
  for (const spoil of [
    (x: Exchange) => x.reset(),
    (x: Exchange) => void x.send('H'),
    (x: Exchange) => x.end(),
    (x: Exchange) => void x.send('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'),
  ]) {
    for (const method of ['GET', 'POST']) {
      assert.equal((await client.ask('/', { method })).text, 'ok')
      const last = peer.requests.at(-1)!
      spoil(last)
      await eventually('it is closed', () => peer.open === 0)
      asked += 1
    }
  }
  assert.equal(new Set(peer.requests.slice(-asked).map(({ connection }) => connection)).size, asked)
  await front.settle(asked)
})

test('a peer that takes nothing of a large request makes the client wait, and is given up in time', async () => {
  peer.script = async (x) => {
    x.inbox.pause()
    await x.gone
  }
  const size = 64 << 20
  const client = await dial(front.port)
  let taken = 0
  const piece = Buffer.alloc(1 << 20)
  const began = performance.now()
  void (async () => {
    await client.write(`POST /direct HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`)
    for (; taken < size && !client.inbox.ended; taken += piece.length) {
      await Promise.race([client.write(piece), client.closed])
    }
  })()
  const reply = await client.reply('POST')
  assert.equal(reply.status, 504)
  assert.ok(taken < size / 2, `${taken >> 20} MiB were taken`)
  assert.ok(performance.now() - began < 3000)
  client.close()
  assert.deepEqual((await front.record()).reasons, ['timeout_send'])
  await front.settle(1)
})

test('a peer that answers one byte at a time is read as any other', async () => {
  peer.script = async (x) => {
    await x.body()
    const text =
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-Sum: 3\r\n\r\n'
    for (const byte of text) {
      await x.send(byte)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  for (let i = 0; i < 2; i++) {
    const reply = await ask(front.port)
    assert.equal(reply.text, 'abc')
    assert.ok(reply.complete)
  }
  assert.equal(peer.requests.at(-1)!.connection, peer.requests.at(-2)!.connection)
  await front.settle(2, { seen: false })
})

/** What a peer says in place of an answer, and what that is called. */
const nonsense: Record<string, readonly [said: string | Buffer, reason: string]> = {
  'a TLS alert': [Buffer.from('15030300020228', 'hex'), 'invalid_header'],
  'a TLS record': [
    Buffer.concat([Buffer.from('160303007a020000760303', 'hex'), Buffer.alloc(120, 7)]),
    'invalid_header',
  ],
  'an SSH banner': ['SSH-2.0-OpenSSH_9.2p1\r\n', 'invalid_header'],
  'an SMTP banner': ['220 mail ESMTP\r\n', 'invalid_header'],
  'the preface of HTTP/2': [Buffer.from('00001204000000000000030000006400', 'hex'), 'invalid_header'],
  'binary zeros': [Buffer.alloc(4096), 'invalid_header'],
  'an endless line': ['HTTP/1.1 200 OK\r\nX: '.padEnd(1 << 20, 'x'), 'header_overflow'],
  'endless fields': [`HTTP/1.1 200 OK\r\n${'X-A: 1\r\n'.repeat(100_000)}`, 'header_overflow'],
  'endless interim answers': ['HTTP/1.1 102 Processing\r\n\r\n'.repeat(50_000), 'invalid_header'],
  'lines that end with LF alone': ['HTTP/1.1 200 OK\nContent-Length: 2\n\nok\r\n\r\n', 'invalid_header'],
  'HTTP/0.9': ['<html>hello</html>', 'invalid_header'],
  'a request': ['GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'invalid_header'],
  'HTTP/2.0 in words': ['HTTP/2 200\r\n\r\n', 'invalid_header'],
  'empty lines first': ['\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'invalid_header'],
  'a length that is none': ['HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\nok', 'invalid_header'],
  'a second status line': ['HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\n\r\n', 'invalid_header'],
}

test('a peer that speaks nonsense is 502 at once, called so, and its connection closed', async () => {
  peer.script = async (x) => {
    await x.body()
    await x.send(nonsense[decodeURIComponent(x.target.slice(1))]![0])
    // It does not close: what it has said must be enough.
    await x.gone
  }
  const began = performance.now()
  for (const name of Object.keys(nonsense)) {
    const reply = await ask(front.port, `/${encodeURIComponent(name)}`)
    assert.equal(reply.status, 502, name)
    assert.deepEqual((await front.record(1)).reasons, [nonsense[name]![1]], name)
    await front.settle(1)
  }
  assert.ok(performance.now() - began < 400 * Object.keys(nonsense).length, 'none was waited for')
})

test('an HTTP/1.0 peer with a body that ends with the connection is heard to its end', async () => {
  peer.script = async (x) => {
    await x.body()
    await x.send('HTTP/1.0 200 OK\r\n\r\nold')
    await sleep(10)
    x.end()
  }
  const reply = await ask(front.port)
  assert.equal(reply.text, 'old')
  assert.ok(reply.complete)
  await front.settle(1)
})
