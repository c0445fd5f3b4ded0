import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { localAddresses, readHosts } from '../../../sidecar/resolve/hosts.ts'
import { candidates, readResolvConf } from '../../../sidecar/resolve/resolv-conf.ts'
import { systemFiles } from '../../../sidecar/resolve/system.ts'

test('servers, domains and options are read as the C library reads them', () => {
  const conf = readResolvConf(`
# of a cluster
nameserver 10.96.0.10
nameserver fd00::a   ; the rest of the line is not looked at
nameserver no-address
search shop.svc.Cluster.Local. svc.cluster.local
options ndots:5 timeout:2 attempts:3 rotate edns0
`)
  assert.deepEqual(conf, {
    servers: [
      { host: '10.96.0.10', port: 53 },
      { host: 'fd00::a', port: 53 },
    ],
    search: ['shop.svc.cluster.local', 'svc.cluster.local'],
    ndots: 5,
    timeoutMs: 2000,
    attempts: 3,
    rotate: true,
  })
})

test('an empty file means the server on this machine', () => {
  const conf = readResolvConf('')
  assert.deepEqual(conf.servers, [{ host: '127.0.0.1', port: 53 }])
  assert.deepEqual([conf.search, conf.ndots, conf.timeoutMs, conf.attempts], [[], 1, 5000, 2])
})

test('no more than three servers are asked, the last of search and domain holds, and wild numbers are tamed', () => {
  const conf = readResolvConf(`
nameserver 127.0.0.1:5353
nameserver [::1]:5354
nameserver 127.0.0.3
nameserver 127.0.0.4
search a.example b.example
domain c.example
options ndots:99 timeout:0 attempts:x
`)
  assert.deepEqual(conf.servers, [
    { host: '127.0.0.1', port: 5353 },
    { host: '::1', port: 5354 },
    { host: '127.0.0.3', port: 53 },
  ])
  assert.deepEqual([conf.search, conf.ndots, conf.timeoutMs, conf.attempts], [['c.example'], 15, 1000, 2])
})

test('a name with few dots is looked for in the domains first, one with many as it is first', () => {
  const conf = { search: ['ns.svc', 'svc'], ndots: 2 }
  assert.deepEqual(candidates('web', conf), ['web.ns.svc', 'web.svc', 'web'])
  assert.deepEqual(candidates('web.other', conf), ['web.other.ns.svc', 'web.other.svc', 'web.other'])
  assert.deepEqual(candidates('a.b.c', conf), ['a.b.c', 'a.b.c.ns.svc', 'a.b.c.svc'])
  assert.deepEqual(candidates('web.', conf), ['web'])
})

test('a hosts file gives all addresses of a name, and localhost needs none', () => {
  const hosts = readHosts(`
127.0.0.1 localhost Box # box too
10.0.0.5  box
fe80::1%eth0 box
10.0.0.5  box db
nonsense  box
`)
  assert.deepEqual(localAddresses('box', hosts), ['127.0.0.1', '10.0.0.5'])
  assert.deepEqual(localAddresses('db.', hosts), ['10.0.0.5'])
  assert.deepEqual(localAddresses('localhost', hosts), ['127.0.0.1'])
  assert.deepEqual(localAddresses('app.localhost', hosts), ['127.0.0.1', '::1'])
  assert.equal(localAddresses('box.example', hosts), undefined)
  assert.equal(localAddresses('notlocalhost', hosts), undefined)
})

test('the files of the system are read again when they have changed, and one that is gone is as good as empty', () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-'))
  try {
    const conf = join(folder, 'resolv.conf')
    const hosts = join(folder, 'hosts')
    const system = systemFiles({ EVENKEEL_RESOLV_CONF: conf, EVENKEEL_HOSTS: hosts })
    assert.deepEqual(system.conf().servers, [{ host: '127.0.0.1', port: 53 }])
    writeFileSync(conf, 'nameserver 127.0.0.2')
    assert.deepEqual(system.conf().servers, [{ host: '127.0.0.2', port: 53 }])
    writeFileSync(conf, 'nameserver 127.0.0.3')
    utimesSync(conf, 1, 1)
    assert.deepEqual(system.conf().servers, [{ host: '127.0.0.3', port: 53 }])
    writeFileSync(hosts, '10.1.1.1 web')
    assert.deepEqual(system.hosts().get('web'), ['10.1.1.1'])
    rmSync(hosts)
    assert.equal(system.hosts().get('web'), undefined)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
