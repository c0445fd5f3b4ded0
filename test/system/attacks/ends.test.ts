import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { ask, Client, dial } from '../../support/client.ts'
import { eventually, lab } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

test('a client that leaves a stalled download which is to be finished nevertheless lets the peer finish', async () => {
  const piece = Buffer.alloc(1 << 20)
  let whole = false
  await using peer = await backend(async (exchange) => {
    await exchange.send(`HTTP/1.1 200 OK\r\nContent-Length: ${20 * piece.length}\r\n\r\n`)
    for (let i = 0; i < 20; i += 1) await exchange.send(piece)
    whole = true
    exchange.done()
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; proxy_ignore_client_abort on; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  client.socket.pause()
  await client.write(Client.bytes('/'))
  await eventually('the peer has been asked', () => peer.requests.length === 1)
  await sleep(300)
  client.reset()
  await eventually('the peer has sent everything', () => whole)
  await it.settle(1)
})

test('a client that is slow at many points of a download adds nothing to what is listened for', async () => {
  await using peer = await backend({ body: Buffer.alloc(48 << 20) })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; proxy_buffering off; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  await client.write(Client.bytes('/'))
  const reply = await client.reply()
  assert.equal(reply.body.length, 48 << 20)
  await it.settle(1)
  assert.doesNotMatch(it.sidecar.stderr, /MaxListeners/)
  client.close()
})

test('a client that leaves just as an interim and a final answer come ends the attempt', async () => {
  let answer = () => {}
  await using peer = await backend(async (exchange) => {
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    await exchange.send(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    )
    exchange.done()
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  await client.write(Client.bytes('/'))
  await eventually('the peer has been asked', () => peer.requests.length === 1)
  it.sidecar.signal('SIGSTOP')
  answer()
  await sleep(100)
  client.reset()
  await sleep(50)
  it.sidecar.signal('SIGCONT')
  await it.settle(1)
  assert.doesNotMatch(it.sidecar.stderr, /Error/)
})

test('a large body that is at hand leaves the wait for the answer to proxy_read_timeout', async () => {
  await using peer = await backend(async (exchange) => {
    await exchange.body()
    await exchange.gone
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; client_max_body_size 10m; proxy_replay_buffer 8m; proxy_read_timeout 300ms; proxy_send_timeout 20s;
       location / { proxy_pass http://up; } location /s { proxy_replay_buffer 1k; proxy_request_buffering off; proxy_pass http://up; } }`,
    [peer],
  )
  for (const at of ['/', '/s']) {
    const began = performance.now()
    const reply = await Promise.race([
      ask(it.port, at, { method: 'POST', body: Buffer.alloc(6 << 20) }),
      sleep(4000),
    ])
    assert.equal(reply?.status, 504, at)
    assert.ok(performance.now() - began < 3000)
    const record = await it.record(1)
    assert.deepEqual(record.reasons, ['timeout_read'], at)
    await it.settle(1)
  }
})

test('a body whose beginning is gone is not sent on without it to where an error page leads', async () => {
  await using first = await backend(async (exchange) => {
    await exchange.inbox.some()
    exchange.reset()
  })
  await using second = await backend()
  await using it = await lab(
    `upstream up { server ${first.address}; } upstream other { server ${second.address}; }
     server {
       listen 127.0.0.1:PORT;
       client_max_body_size 100m;
       proxy_replay_buffer 4k;
       location / { proxy_pass http://up; error_page 502 = @other; }
       location @other { proxy_pass http://other; }
     }`,
    [first, second],
  )
  const client = await dial(it.port)
  const began = performance.now()
  client.write(Client.bytes('/', { method: 'POST', body: Buffer.alloc(3 << 20) }))
  const reply = await client.reply()
  assert.equal(reply.status, 502)
  assert.ok(performance.now() - began < 2000, 'answered at once')
  assert.equal(second.requests.length, 0)
  client.close()
  await it.settle(1, { seen: false })
})

test('a body that is at hand goes on whole to where an error page leads', async () => {
  await using second = await backend(async (exchange) => {
    const { body } = await exchange.body()
    await exchange.reply({ body: `${body.length}` })
  })
  await using it = await lab(
    `upstream up { server 127.0.0.1:9; } upstream other { server ${second.address}; }
     server {
       listen 127.0.0.1:PORT;
       client_max_body_size 100m;
       location / { proxy_pass http://up; error_page 502 = @other; }
       location @other { proxy_pass http://other; }
     }`,
    [second],
  )
  for (const length of [1000, 3 << 20]) {
    const reply = await ask(it.port, '/', { method: 'POST', body: Buffer.alloc(length) })
    assert.equal(reply.text, `${length}`)
  }
  await it.settle(2)
})

test('a client that sends all of a body before it reads gets the answer that came early', async () => {
  await using early = await backend(async (exchange) => {
    await exchange.send('HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno')
    exchange.done()
    await exchange.gone
  })
  await using it = await lab(
    `upstream up { server ${early.address}; }
     server {
       listen 127.0.0.1:PORT;
       client_max_body_size 40m;
       location / { proxy_pass http://up; }
       location /unbuffered { proxy_pass http://up; proxy_request_buffering off; }
       location /small { client_max_body_size 1m; proxy_pass http://up; }
       location /local { return 403; }
     }`,
    [early],
  )
  const whole = Buffer.alloc(15 << 20)
  const pieces = Array.from({ length: 15 }, () => whole.subarray(0, 1 << 20))
  const asked = [
    ['/', whole, 403],
    ['/', pieces, 403],
    ['/unbuffered', whole, 403],
    ['/small', whole, 413],
    ['/local', whole, 403],
  ] as const
  for (const [target, body, status] of asked) {
    const client = await dial(it.port)
    client.socket.pause()
    await client.write(Client.bytes(target, { method: 'POST', body }))
    assert.equal((await client.reply()).status, status, target)
    client.close()
  }
  await it.settle(asked.length, { seen: false })
})

test('a client that is gone before it is accepted is not taken for one of a Unix socket', async () => {
  await using a = await backend({ body: 'a' })
  await using sidecar = await start(`http {
    access_log access.log combined;
    set_real_ip_from unix:;
    real_ip_header X-Forwarded-For;
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://${a.address}; } }
  }`)
  const request = 'GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n'
  const leave = async () => {
    const client = await dial(sidecar.port)
    await client.write(request)
    client.reset()
  }
  for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 40 }, leave))
  using last = await dial(sidecar.port)
  await last.write(request)
  assert.equal((await last.reply()).status, 200)
  await eventually('nothing is open but the last', async () => {
    const { active, idle } = await sidecar.json<{ active: number; idle: number }>('/status/connections')
    return active === 0 && idle === 1
  })
  const log = await readFile(`${sidecar.folder}/access.log`, 'latin1')
  const addresses = log
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ')[0])
  assert.deepEqual([...new Set(addresses)], ['127.0.0.1'])
})
