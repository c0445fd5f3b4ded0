import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ErrorLog, type ErrorLogSpec, levels } from '../../../sidecar/telemetry/error-log.ts'
import { LogFiles } from '../../../sidecar/telemetry/log-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-error-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0

/** What the logs hold after something was logged, without times and process ids. */
function logged(
  specs: readonly (ErrorLogSpec['level'] | undefined)[],
  write: (log: ErrorLog) => void,
): string[] {
  const logs = new LogFiles()
  const log = new ErrorLog(logs)
  const asked = specs.map((level) => {
    const path = join(folder, `${++files}.log`)
    return level === undefined ? { path } : { path, level }
  })
  log.configure(asked)
  write(log)
  logs.flushSync()
  return asked.map(({ path }) => readFileSync(path, 'utf8').replace(/^\S+ \S+ (\[\w+\]) \d+#0: /gm, '$1 '))
}

test('a line has time, level, process and thread as nginx writes them', () => {
  const logs = new LogFiles()
  const log = new ErrorLog(logs)
  const path = join(folder, 'form.log')
  log.configure([{ path }])
  log.log('error', 'some text')
  logs.flushSync()
  const expected = new RegExp(
    `^\\d{4}/\\d\\d/\\d\\d \\d\\d:\\d\\d:\\d\\d \\[error\\] ${process.pid}#0: some text\\n$`,
  )
  assert.match(readFileSync(path, 'utf8'), expected)
})

test('each log takes its own level and what is graver', () => {
  const every = (log: ErrorLog) => {
    for (const level of levels) log.log(level, level)
  }
  const [all, warn, usual] = logged(['debug', 'warn', undefined], every)
  assert.equal(all, levels.map((level) => `[${level}] ${level}\n`).join(''))
  assert.equal(warn, '[warn] warn\n[error] error\n[crit] crit\n[alert] alert\n[emerg] emerg\n')
  assert.equal(usual, '[error] error\n[crit] crit\n[alert] alert\n[emerg] emerg\n')
})

test('whether a level would be written can be asked', () => {
  logged(['crit', 'warn'], (log) => {
    assert.deepEqual(
      levels.filter((level) => log.admits(level)),
      ['warn', 'error', 'crit', 'alert', 'emerg'],
    )
  })
})

test('a text is one line without control characters, in UTF-8, and not endless', () => {
  const [text] = logged([undefined], (log) => {
    log.log('error', 'a\nb\r\x1b[0m\x7f ü \u0085')
    log.log('error', 'x'.repeat(10_000))
  })
  const lines = text!.split('\n')
  assert.equal(lines[0], '[error] a\\x0Ab\\x0D\\x1B[0m\\x7F ü \u0085')
  assert.equal(lines[1], `[error] ${'x'.repeat(4000)}...`)
})

test('a log that cannot be opened is refused, and the others go on', () => {
  const [text] = logged([undefined], (log) => {
    assert.throws(
      () => log.configure([{ path: '/nowhere/a.log' }]),
      /^Error: open\(\) "\/nowhere\/a\.log" failed/,
    )
    log.log('error', 'as before')
  })
  assert.equal(text, '[error] as before\n')
})

/** Standard error of a program that uses the process's own log. */
function stderrOf(code: string): string {
  const at = new URL('../../../sidecar/telemetry/', import.meta.url).href
  const program = `
    import { errorLog } from '${at}error-log.ts'
    import { logFiles } from '${at}log-files.ts'
    ${code}`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return stderr.replace(/^\S+ \S+ (\[\w+\]) \d+#0: /gm, '$1 ')
}

test('unless configured it writes to standard error from notice on, up to the last line', () => {
  assert.equal(
    stderrOf(`for (const level of ['info', 'notice', 'emerg']) errorLog.log(level, level); process.exit(0)`),
    '[notice] notice\n[emerg] emerg\n',
  )
})

test('trouble with an access log is told in the error log', () => {
  assert.equal(
    stderrOf(`logFiles.open('/dev/full').write('line\\n')`),
    '[alert] write() to "/dev/full" failed (28: No space left on device), lines are dropped\n',
  )
})

test('an error log that cannot be written ends nothing', () => {
  assert.equal(
    stderrOf(`errorLog.configure([{ path: '/dev/full' }]); errorLog.log('error', 'lost')
      setTimeout(() => process.stderr.write('alive ' + logFiles.dropped), 50)`),
    'alive 2',
  )
})
