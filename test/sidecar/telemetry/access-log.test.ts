import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Variables } from '../../../feedback/variables.ts'
import { AccessLogs, type NamedFormat, reopenLogs } from '../../../sidecar/telemetry/access-log.ts'
import { LogFiles, logFiles } from '../../../sidecar/telemetry/log-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-access-'))
after(() => rmSync(folder, { recursive: true }))
let names = 0
const fresh = () => join(folder, `${++names}.log`)

const formats: readonly NamedFormat[] = [
  { name: 'short', format: '$request_method $uri' },
  { name: 'quoted', escape: 'json', format: '{"uri":"$uri"}' },
]

function setUp() {
  const files = new LogFiles()
  const variables = new Variables()
  return { files, variables, logs: new AccessLogs(variables, formats, files) }
}

const call = (uri: string, status = 200) => Object.assign(new Call(), { uri, target: uri, status })

test('a finished request is a line in its format, escaped as the format says', () => {
  const { files, logs } = setUp()
  const [short, quoted] = [fresh(), fresh()]
  logs.open({ path: short, format: 'short' })(call('/a"\n'))
  logs.open({ path: quoted, format: 'quoted' })(call('/a"\n'))
  files.flushSync()
  assert.equal(readFileSync(short, 'utf8'), 'GET /a\\x22\\x0A\n')
  assert.equal(readFileSync(quoted, 'utf8'), '{"uri":"/a\\"\\n"}\n')
})

test('logs of one path share the file, whatever their formats', () => {
  const { files, logs } = setUp()
  const path = fresh()
  const [one, other] = [logs.open({ path, format: 'short' }), logs.open({ path, format: 'quoted' })]
  one(call('/1'))
  other(call('/2'))
  one(call('/3'))
  files.flushSync()
  assert.equal(readFileSync(path, 'utf8'), 'GET /1\n{"uri":"/2"}\nGET /3\n')
})

test('combined and json need not be defined, and json is what a log has that names none', () => {
  const { files, logs } = setUp()
  const [combined, plain] = [fresh(), fresh()]
  logs.open({ path: combined, format: 'combined' })(call('/c'))
  logs.open({ path: plain })(call('/j', 404))
  files.flushSync()
  assert.match(readFileSync(combined, 'utf8'), /^- - - \[.*\] "GET \/c HTTP\/1\.1" 200 0 "-" "-"\n$/)
  const { path, status } = JSON.parse(readFileSync(plain, 'utf8')) as Record<string, unknown>
  assert.deepEqual({ path, status }, { path: '/j', status: 404 })
})

test('a condition that is empty or 0 keeps a request out', () => {
  const { files, logs, variables } = setUp()
  const path = fresh()
  const log = logs.open({ path, format: 'short', if: variables.compile('$arg_log') })
  for (const [uri, args] of [
    ['/no', ''],
    ['/zero', 'log=0'],
    ['/yes', 'log=1'],
    ['/zeros', 'log=00'],
  ]) {
    log(Object.assign(call(uri!), { args }))
  }
  files.flushSync()
  assert.equal(readFileSync(path, 'utf8'), 'GET /yes\nGET /zeros\n')
})

test('mistakes are named', () => {
  const { logs, variables } = setUp()
  assert.throws(() => logs.open({ path: fresh(), format: 'nope' }), { message: 'unknown log format "nope"' })
  assert.throws(() => logs.open({ path: fresh(), format: 'constructor' }), /unknown log format/)
  assert.throws(() => logs.open({ path: '/nowhere/a.log' }), /open\(\) "\/nowhere\/a\.log" failed \(2: /)
  assert.throws(() => new AccessLogs(variables, [{ name: 'x', format: '$nope' }]), {
    message: 'unknown "nope" variable',
  })
  assert.throws(() => new AccessLogs(variables, [...formats, ...formats]), {
    message: 'duplicate "log_format" name "short"',
  })
})

test('reopening the logs goes on in a new file', () => {
  const logs = new AccessLogs(new Variables(), formats)
  const path = fresh()
  const log = logs.open({ path, format: 'short' })
  log(call('/old'))
  renameSync(path, `${path}.1`)
  reopenLogs()
  log(call('/new'))
  logFiles.flushSync()
  assert.equal(readFileSync(`${path}.1`, 'utf8'), 'GET /old\n')
  assert.equal(readFileSync(path, 'utf8'), 'GET /new\n')
  logFiles.keepOnly(['stderr'])
})
