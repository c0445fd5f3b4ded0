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

test('keys and pass phrases of TLS are paths, which are shown as they are', () => {
  const text = `http { server {
    ssl_certificate a.pem; ssl_certificate_key /etc/a.key; ssl_password_file phrases;
    location / { proxy_pass https://b; proxy_ssl_certificate c.pem; proxy_ssl_certificate_key c.key; }
    location /c { grpc_pass grpcs://b:1; grpc_set_header Authorization "Bearer hush"; }
  } }`
  const { model } = loadText(text, 'x.conf', 'nginx')
  const masked = printModel(maskModel(model))
  assert.ok(!/hush/.test(masked), masked)
  assert.equal(masked, printModel(model).replace('Bearer hush', '"***"'))
  assert.match(masked, /\/etc\/a\.key/)
})
