import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError } from '../../../sidecar/config/error.ts'
import { loadText } from '../../../sidecar/config/load.ts'

/** What is said against a configuration; empty where nothing is. */
function refusal(text: string): string {
  try {
    loadText(text, 'a.conf', 'nginx')
    return ''
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message
  }
}

const location = (line: string) => `http { server { location / { ${line} } } }`
const session = (line: string) => `stream { server { listen 127.0.0.1:1; proxy_pass 127.0.0.1:2; ${line} } }`

test('a directive that is refused may say that what it is about is off', () => {
  for (const line of [
    'proxy_cache off;',
    'auth_request off;',
    'limit_rate 0;',
    'proxy_no_cache 1;',
    'ssi off;',
  ]) {
    assert.equal(refusal(location(line)), '', line)
  }
  for (const line of ['proxy_upload_rate 0;', 'proxy_bind off;']) {
    assert.equal(refusal(session(line)), '', line)
  }
})

test('what it asks for beyond that is refused as ever', () => {
  for (const line of [
    'proxy_cache zone;',
    'auth_basic realm;',
    'limit_rate 10k;',
    'allow all;',
    'deny all;',
    'chunked_transfer_encoding off;',
    'proxy_ignore_headers Set-Cookie X-Accel-Buffering;',
  ]) {
    assert.match(refusal(location(line)), /^a\.conf:1: "\w+" directive is not supported/, line)
  }
  assert.match(refusal(session('proxy_bind 127.0.0.1;')), /not supported yet/)
})

test('where something else does the work, the refusal says so', () => {
  assert.match(refusal(session('server_name a;')), /not supported yet, a "map" of \$ssl_preread_server_name/)
  assert.match(refusal(location('limit_req zone=a;')), /not supported, "max_conns" and "queue"/)
  assert.match(refusal('http { ssl_conf_command A b; }'), /not supported yet, see "ssl_protocols"/)
})

test('it is named in a notice, in either syntax', () => {
  const yaml = 'http: { charset: off, limit_rate: 0, proxy_ignore_headers: [Set-Cookie, Vary], ssi: false }'
  const conf = 'http { charset off; limit_rate 0; proxy_ignore_headers Set-Cookie Vary; ssi off; }'
  for (const { notices } of [loadText(yaml, 'a', 'yaml'), loadText(conf, 'a', 'nginx')]) {
    assert.deepEqual(
      notices.map((line) => /^"\w+" directive has no effect here/.exec(line)?.[0].split('"')[1]),
      ['charset', 'limit_rate', 'proxy_ignore_headers', 'ssi'],
    )
  }
})

test('a server of stream may be the default one of its address, having it to itself', () => {
  const { notices } = loadText(session('').replace(':1;', ':1 default_server;'), 'a', 'nginx')
  assert.match(notices.join(), /^"default_server" parameter of "listen" directive has no effect here/)
})

test('what cannot be obeyed is refused with what can', () => {
  const zone = (line: string) => refusal(`http { server { ${line} } }`)
  const fixed = /is not supported yet, give it a fixed name$/
  assert.match(zone('status_zone $host;'), fixed)
  assert.match(zone('status_zone $host zone=a:5;'), /^a\.conf:1: "zone" parameter of "status_zone" is not/)
  assert.match(zone('status_zone $host zone=a:5;'), fixed)
  assert.match(zone('status_zone;'), /invalid number of arguments in "status_zone" directive/)
})

test('idle connections may be said to be kept for locations apart', () => {
  const { model, notices } = loadText('http { upstream a { server b; keepalive 8 local; } }', 'a', 'nginx')
  assert.equal(model.http?.upstreams?.['a']?.keepalive, 8)
  assert.match(notices.join(), /^"local" parameter of "keepalive" directive has no effect here/)
  assert.match(refusal('http { upstream a { keepalive 8 9; } }'), /invalid number of arguments/)
})

test('logs go to files alone, and no file is made of what would be somewhere else', () => {
  const syslog = /is not supported yet, log to a file, or to \/dev\/stdout or \/dev\/stderr$/
  assert.match(refusal('http { access_log syslog:server=10.0.0.1 combined; }'), syslog)
  assert.match(refusal('stream { access_log memory:1m; }'), syslog)
  assert.match(refusal('error_log syslog:server=10.0.0.1,tag=a info;'), syslog)
  assert.match(
    refusal('http { access_log logs/$host.log combined; }'),
    /variables in the path of "access_log"/,
  )
  assert.equal(refusal('http { access_log off; server { access_log /dev/stdout combined if=$args; } }'), '')
})
