import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { dialFrames, frame, get, number } from '../../support/http2-frames.ts'
import { start } from '../../support/sidecar.ts'

test('a client that leaves while both sides talk is noted as one that has left, whatever it speaks', async () => {
  await using peer = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
    await x.gone
  })
  await using it = await start(
    `worker_processes 1;
     http {
       server {
         listen 127.0.0.1:PORT; http2 on;
         location / { proxy_pass http://${peer.address}; proxy_request_buffering off; }
       }
     }`,
  )
  const note = '"path":"/PATH","status":499,.*"ending":"aborted","reason":"client_abort"'
  using second = await dialFrames(it.port)
  second.headers(1, { ...get, ':method': 'POST', ':path': '/second' }, 0)
  second.send(frame('data', 0, 1, Buffer.from('abc')))
  await second.frame('data', 1)
  second.send(frame('reset', 0, 1, number(8)))
  await it.logged(/"path":"\/second".*\n/)
  assert.match(it.stdout, new RegExp(note.replace('PATH', 'second')))
  using first = await dial(it.port)
  await first.write('POST /first HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc')
  await first.head()
  first.reset()
  await it.logged(/"path":"\/first".*\n/)
  assert.match(it.stdout, new RegExp(note.replace('PATH', 'first')))
})
