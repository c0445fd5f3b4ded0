import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fleetOptions } from '../../../sidecar/build/fleet-options.ts'
import { placed } from '../../../sidecar/build/place.ts'
import { ConfigError } from '../../../sidecar/config/error.ts'
import { loadText } from '../../../sidecar/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-fleet-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

/** A key and a certificate that it signed itself. */
function certify(name: string): void {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
  const subject = ['-subj', `/CN=${name}`, '-days', '2']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
}

async function optionsOf(line: string) {
  const { model } = loadText(`pid a;\n${line}`, 'test.conf', 'nginx')
  return await fleetOptions(model, folder)
}

/** What is wrong with a line, with its place. */
async function mistakeIn(line: string): Promise<string> {
  const loaded = loadText(`pid a;\n${line}`, 'test.conf', 'nginx')
  try {
    await fleetOptions(loaded.model, folder)
  } catch (error) {
    const found = placed(error, loaded)
    assert.ok(found instanceof ConfigError, String(found))
    return found.message.replaceAll(folder, '')
  }
  return 'none'
}

test('without the directive there is no fleet', async () => {
  assert.equal(await optionsOf(''), undefined)
})

test('the defaults are those of the directive, and the name is of this process', async () => {
  assert.deepEqual(await optionsOf('fleet redis://127.0.0.1;'), {
    urls: ['redis://127.0.0.1'],
    group: 'default',
    name: `${hostname()}-${process.pid}`,
    prefix: 'evenkeel',
    interval: 200,
    ttl: 5000,
    timeout: 100,
    sentinel: undefined,
    cluster: false,
    user: undefined,
    password: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    required: false,
  })
})

test('what is written holds, and times are milliseconds', async () => {
  const options = await optionsOf(
    `fleet redis://a:b@h:1/2 redis://i sentinel=main group=shop name=x prefix=p interval=1s ttl=1m timeout=50ms user=app required;`,
  )
  const { urls, sentinel, group, name, prefix, interval, ttl, timeout, user, required } = options!
  assert.deepEqual(
    [urls, sentinel, group, name, prefix, interval, ttl, timeout, user, required],
    [['redis://a:b@h:1/2', 'redis://i'], 'main', 'shop', 'x', 'p', 1000, 60_000, 50, 'app', true],
  )
  assert.equal((await optionsOf('fleet redis://h cluster;'))!.cluster, true)
})

test('a time is no longer than a timer can be', async () => {
  const { interval, ttl } = (await optionsOf('fleet redis://h interval=60d ttl=1y;'))!
  assert.deepEqual([interval, ttl], [2 ** 31 - 1, 2 ** 31 - 1])
})

test('a password is its file without the end of its last line', async () => {
  for (const [text, password] of [
    ['secret', 'secret'],
    ['secret\n', 'secret'],
    ['secret\r\n', 'secret'],
    [' two words \n\n', ' two words \n'],
  ] as const) {
    file('password', text)
    assert.equal((await optionsOf('fleet redis://h password_file=password;'))!.password, password)
    assert.equal((await optionsOf(`fleet redis://h password_file=${folder}/password;`))!.password, password)
  }
})

test('a password file that is missing or empty is a mistake with its place', async () => {
  file('empty', '\n')
  assert.equal(
    await mistakeIn('fleet redis://h password_file=nowhere;'),
    'test.conf:2: open() "/nowhere" failed (2: No such file or directory)',
  )
  assert.equal(
    await mistakeIn('fleet redis://h\n  password_file=empty;'),
    'test.conf:2: fleet password file "/empty" is empty',
  )
})

test('a folder is no file', async () => {
  assert.equal(
    await mistakeIn(`fleet redis://h password_file=${folder};`),
    'test.conf:2: open() "" failed (21: Is a directory)',
  )
})

test('certificates and their keys are read, and looked at', async () => {
  certify('one')
  certify('other')
  file('text', 'no certificate\n')
  const { ca, cert, key } = (await optionsOf('fleet rediss://h ca=other.pem cert=one.pem key=one.key;'))!
  assert.match(ca!, /^-----BEGIN CERTIFICATE-----/)
  assert.match(cert!, /^-----BEGIN CERTIFICATE-----/)
  assert.match(key!, /^-----BEGIN (?:EC )?PRIVATE KEY-----/)
  assert.match(
    await mistakeIn('fleet rediss://h ca=gone.pem;'),
    /^test\.conf:2: open\(\) "\/gone\.pem" failed \(2: /,
  )
  assert.match(
    await mistakeIn('fleet rediss://h ca=text;'),
    /^test\.conf:2: cannot load certificate "text": /,
  )
  assert.match(
    await mistakeIn('fleet rediss://h cert=text key=one.key;'),
    /^test\.conf:2: cannot load certificate "text": /,
  )
  assert.match(
    await mistakeIn('fleet rediss://h cert=one.pem key=text;'),
    /^test\.conf:2: cannot load certificate key "text": /,
  )
  assert.match(
    await mistakeIn('fleet rediss://h cert=one.pem key=other.key;'),
    /^test\.conf:2: cannot load certificate key "other\.key": .*mismatch/,
  )
})
