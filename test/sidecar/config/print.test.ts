import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadText } from '../../../sidecar/config/load.ts'
import { maskModel, printModel } from '../../../sidecar/config/print.ts'

test('prints nothing for an empty configuration', () => {
  assert.equal(printModel({}), '')
})

test('masks passwords in URLs, secrets and values of secret fields, and leaves the rest alone', () => {
  const text = `http { upstream a { server b; sticky_secret hush; } server { location / {
    proxy_set_header Authorization "Basic QWxhZGRpbg==";
    proxy_set_header X-Api-Key abc;
    proxy_set_header Host $host;
    proxy_pass http://$x;
    return 302 https://me:pass@example.com/a@b;
  } } }`
  const { model } = loadText(text, 'x.conf', 'nginx')
  const masked = printModel(maskModel(model))
  assert.ok(!/QWxhZGRpbg|abc|pass@|hush/.test(masked), masked)
  assert.match(masked, /https:\/\/me:\*\*\*@example\.com\/a@b/)
  assert.match(masked, /value: \$host/)
  assert.match(printModel(model), /me:pass@/)
})
