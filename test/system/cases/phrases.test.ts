import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, exchange } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'

test('an answer of our own has the same words in its status line and on its page', async () => {
  const codes = [401, 403, 404, 405, 408, 413, 414, 416, 500, 502, 503, 504]
  const locations = codes.map((code) => `location /${code} { return ${code}; }`).join(' ')
  await using front = await lab(
    `server { listen 127.0.0.1:PORT; client_max_body_size 10;
       ${locations} location / { proxy_pass http://127.0.0.1:9; } }`,
    [],
  )
  const same = (start: string, page: string) => {
    assert.ok(page.includes(start.slice('HTTP/1.1 '.length)), `${start}: ${page}`)
  }
  for (const code of codes) {
    const reply = await ask(front.port, `/${code}`)
    assert.equal(reply.status, code)
    same(reply.head.start, reply.text)
  }
  const large = await ask(front.port, '/', { method: 'POST', body: 'more than ten bytes' })
  assert.equal(large.head.start, 'HTTP/1.1 413 Request Entity Too Large')
  same(large.head.start, large.text)
  // One that is refused before there is a request.
  const said = await exchange(front.port, `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`)
  same(said.slice(0, said.indexOf('\r\n')), said.slice(said.indexOf('\r\n\r\n')))
})
