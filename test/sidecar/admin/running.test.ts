import assert from 'node:assert/strict'
import { test } from 'node:test'
import { masked } from '../../../sidecar/admin/running.ts'

test('secrets are masked wherever they stand, and nothing else is', () => {
  const model = {
    admin_token_file: '/etc/token',
    fleet: {
      urls: ['redis://user:pass@redis:6379/1', 'redis://redis:6379'],
      password: 'x',
      password_file: '/p',
    },
    http: {
      proxy_set_header: [
        { name: 'Authorization', value: 'Basic abc' },
        { name: 'Authorization', value: '$http_authorization' },
        { name: 'X-Api-Key', value: 'k$remote_addr' },
        { name: 'Cookie', value: '' },
        { name: 'Host', value: '$host' },
      ],
      upstreams: { backend: { hash: { key: '$request_uri' }, servers: [{ address: '127.0.0.1:80' }] } },
    },
  }
  const before = structuredClone(model)
  assert.deepEqual(masked(model), {
    admin_token_file: '/etc/token',
    fleet: { urls: ['redis://***@redis:6379/1', 'redis://redis:6379'], password: '***', password_file: '/p' },
    http: {
      proxy_set_header: [
        { name: 'Authorization', value: '***' },
        { name: 'Authorization', value: '$http_authorization' },
        { name: 'X-Api-Key', value: '***' },
        { name: 'Cookie', value: '' },
        { name: 'Host', value: '$host' },
      ],
      upstreams: { backend: { hash: { key: '$request_uri' }, servers: [{ address: '127.0.0.1:80' }] } },
    },
  })
  assert.deepEqual(model, before)
})

test('a member named __proto__ stays a member', () => {
  const model = JSON.parse('{"maps": {"__proto__": {"a": "b"}}}')
  assert.equal(JSON.stringify(masked(model)), '{"maps":{"__proto__":{"a":"b"}}}')
})
