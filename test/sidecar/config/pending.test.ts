import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Context } from '../../../sidecar/config/directive.ts'
import { isPending, pending, pendingPart } from '../../../sidecar/config/directives/pending.ts'
import { areas } from '../../../sidecar/config/directives.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { reference } from '../../../sidecar/config/reference.ts'

const around: Partial<Record<Context, readonly [string, string]>> = {
  http: ['http {', '}'],
  server: ['http { server {', '} }'],
  location: ['http { server { location / {', '} } }'],
  if: ['http { server { location / { if ($uri) {', '} } } }'],
  stream: ['stream {', '}'],
  'stream server': ['stream { server { listen 1; return a;', '} }'],
}

test('what nothing obeys so far is refused by name, whatever its arguments, and told of as such', () => {
  const entries = areas.flatMap((area) => area.directives).filter(({ name }) => isPending(name))
  for (const { name, in: contexts } of entries) {
    for (const context of contexts) {
      const [begin, end] = around[context]!
      const text = `${begin}\n${name} a b;\n${end}`
      assert.throws(() => loadText(text, 'x', 'nginx'), {
        message: `x:2: "${name}" directive is not supported yet`,
      })
    }
    assert.ok(!reference().includes(`\`${name} `), name)
  }
})

test('a parameter or a value that nothing obeys so far is refused by name', () => {
  assert.equal(pendingPart('listen', { address: '*:80', backlog: 5 }), undefined)
  assert.equal(pendingPart('proxy_http_version', '1.1'), undefined)
  assert.equal(pendingPart('nothing', undefined), undefined)
  for (const entry of pending.filter((entry) => entry.includes(' '))) {
    const [name = '', part = ''] = entry.split(' ')
    const parts = [pendingPart(name, { [part]: true }), pendingPart(name, part)]
    assert.deepEqual(parts, [`"${part}" parameter`, `"${entry}"`])
  }
})
