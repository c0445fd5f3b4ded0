import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { freePort } from '../support/free-port.ts'
import { launcher, start } from '../support/sidecar.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-cli-'))
after(() => rmSync(folder, { recursive: true }))

type Ended = Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'>

/** Runs the program to its end. */
function run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { command = launcher, cwd = folder, env = process.env } = options
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, stdout, stderr }))
  })
}

interface RunOptions {
  readonly command?: string
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
}

/** Writes a file of the folder and says where it is. */
function file(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name)
  writeFileSync(path, text, { mode })
  return path
}

const good = 'admin off; http { server { listen 127.0.0.1:1; location / { return 204; } } }'

// The launcher.

test('the launcher works through symbolic links and from any folder', async () => {
  const link = join(folder, 'link')
  symlinkSync(launcher, join(folder, 'direct'))
  symlinkSync('direct', link)
  const { status, stderr } = await run(['-v'], { command: link, cwd: '/' })
  assert.equal(status, 0)
  assert.match(stderr, /^evenkeel version: evenkeel\/\d+\.\d+\.\d+\n$/)
  const relative = await run(['./link', '-v'], { command: 'sh' })
  assert.equal(relative.stderr, stderr)
  const bare = await run(['link', '-v'], { command: 'sh' })
  assert.equal(bare.stderr, stderr)
})

test('a Node that is too old is passed over', async () => {
  mkdirSync(join(folder, 'old'))
  file('old/node', '#!/bin/sh\necho v20.1.0\n', 0o755)
  const env = { ...process.env, PATH: `${folder}/old:/usr/bin:/bin` }
  const { status, stderr } = await run(['-v'], { env })
  assert.equal(status, 0, stderr)
  const without = join(folder, 'without', 'sidecar')
  mkdirSync(without, { recursive: true })
  cpSync(launcher, join(without, 'evenkeel'))
  const none = await run(['-v'], { env, command: join(without, 'evenkeel') })
  assert.equal(none.status, 1)
  assert.match(none.stderr, /^evenkeel: Node\.js 24 or later is needed: [^\n]+\n$/)
})

test('EVENKEEL_NODE names the Node to use, and a wrong one is said in one line', async () => {
  const chosen = file(
    'chosen',
    `#!/bin/sh\n[ "$1" = --version ] || echo chosen >&2\nexec ${process.execPath} "$@"\n`,
    0o755,
  )
  const { stderr } = await run(['-v'], { env: { ...process.env, EVENKEEL_NODE: chosen } })
  assert.match(stderr, /^chosen\nevenkeel version/)
  const old = file('too-old', '#!/bin/sh\necho v22.9.0\n', 0o755)
  for (const wrong of [old, '/nowhere/node', '/bin/true']) {
    const refused = await run(['-v'], { env: { ...process.env, EVENKEEL_NODE: wrong } })
    assert.equal(refused.status, 1)
    assert.equal(
      refused.stderr,
      `evenkeel: EVENKEEL_NODE is "${wrong}", which is not a Node.js 24 or later\n`,
    )
  }
})

// Asking the program.

test('-V says what it runs on, -h how to use it', async () => {
  const version = await run(['-V'])
  assert.match(version.stderr, /^evenkeel version: evenkeel\/[\d.]+\nrunning on Node\.js v\d+[^\n]+\n$/)
  const help = await run(['-h'])
  assert.equal(help.status, 0)
  assert.match(help.stderr, /Usage: evenkeel .*\n/)
})

test('a wrong option is named', async () => {
  const { status, stderr } = await run(['-x'])
  assert.equal(status, 1)
  assert.equal(stderr, 'evenkeel: invalid option: "x"\n')
})

test('simulate prints a table and says on the other stream how far it is', async () => {
  const cwd = join(folder, 'simulated')
  mkdirSync(cwd)
  const group = 'least_conn; server 127.0.0.1:1; server 127.0.0.1:2;'
  writeFileSync(join(cwd, 'evenkeel.conf'), `http { upstream shop { ${group} } }`)
  const words = ['simulate', '--scenario', 'stall', '--duration', '6', '--methods', 'round_robin']
  const { status, stdout, stderr } = await run(words, { cwd })
  assert.equal(status, 0)
  assert.match(stdout, /^stall: .*\n2 peers of 2 workers/)
  assert.match(stdout, /^\* least_conn +[\d.]+/m)
  assert.match(stdout, /^ {2}round_robin +[\d.]+/m)
  assert.match(stderr, /^1 of 3, [\d.]+ s: central queue\n/)
})

test('simulate says what it does not understand', async () => {
  const wrong = await run(['simulate', '--load', 'much'])
  assert.equal(wrong.status, 1)
  assert.match(wrong.stderr, /^evenkeel: invalid value "much" of option "--load"/)
  const config = join(folder, 'wrong.conf')
  writeFileSync(config, 'http {\n nonsense;\n}')
  const { status, stderr } = await run(['simulate', '-c', config])
  assert.equal(status, 1)
  assert.match(stderr, /^evenkeel: \[emerg\] unknown directive "nonsense" in .*wrong\.conf:2\n$/)
})

test('without -c it looks for evenkeel.conf, then for evenkeel.yaml, and says so when there is neither', async () => {
  const cwd = join(folder, 'empty')
  mkdirSync(cwd)
  const none = await run(['-t'], { cwd })
  assert.equal(none.status, 1)
  assert.equal(
    none.stderr,
    'evenkeel: [emerg] neither ./evenkeel.conf nor ./evenkeel.yaml is there: name a configuration with -c\n',
  )
  writeFileSync(join(cwd, 'evenkeel.yaml'), 'admin: "off"\n')
  assert.match((await run(['-t'], { cwd })).stderr, /file .*evenkeel\.yaml test is successful/)
  writeFileSync(join(cwd, 'evenkeel.conf'), good)
  assert.match((await run(['-t'], { cwd })).stderr, /file .*evenkeel\.conf test is successful/)
  assert.match(
    (await run(['-t', '-p', cwd], { cwd: '/' })).stderr,
    /file .*empty\/evenkeel\.conf test is succ/,
  )
})

// Testing a configuration.

test('-t says in two lines that a configuration is good', async () => {
  const path = file('good.conf', good)
  for (const args of [
    ['-t', '-c', path],
    ['-tc', path],
    ['-c', 'good.conf', '-t'],
  ]) {
    assert.deepEqual(await run(args), {
      status: 0,
      stdout: '',
      stderr:
        `evenkeel: the configuration file ${path} syntax is ok\n` +
        `evenkeel: configuration file ${path} test is successful\n`,
    })
  }
  assert.deepEqual(await run(['-tqc', path]), { status: 0, stdout: '', stderr: '' })
})

test('-t says what is wrong, and where', async () => {
  const path = file('bad.conf', 'http {\n  upstream u {\n    server 127.0.0.1:1 wait=2;\n  }\n}\n')
  const { status, stderr } = await run(['-t', '-c', path])
  assert.equal(status, 1)
  assert.equal(
    stderr,
    `evenkeel: [emerg] invalid parameter "wait=2" in ${path}:3\nevenkeel: configuration file ${path} test failed\n`,
  )
  const missing = join(folder, 'missing.conf')
  const gone = await run(['-tc', missing])
  assert.equal(gone.status, 1)
  assert.equal(
    gone.stderr,
    `evenkeel: [emerg] open() "${missing}" failed (2: No such file or directory)\n` +
      `evenkeel: configuration file ${missing} test failed\n`,
  )
})

test('-t finds a file of the fleet that cannot be read, and asks no Redis', async () => {
  const text = (file: string) =>
    `admin off;\nfleet redis://127.0.0.1:1 ${file} required;\nhttp { server { listen 127.0.0.1:1; } }\n`
  const missing = file('fleet-missing.conf', text('password_file=nowhere'))
  const { status, stderr } = await run(['-tc', missing])
  assert.equal(status, 1)
  assert.equal(
    stderr,
    `evenkeel: [emerg] open() "${folder}/nowhere" failed (2: No such file or directory) in ${missing}:2\n` +
      `evenkeel: configuration file ${missing} test failed\n`,
  )
  file('redis.password', 'secret\n')
  const present = await run(['-Tc', file('fleet.conf', text('password_file=redis.password'))])
  assert.equal(present.status, 0, present.stderr)
  assert.match(
    present.stdout,
    /^fleet:\n {2}urls:\n {4}- redis:\/\/127\.0\.0\.1:1\n {2}password_file: redis\.password\n/m,
  )
  assert.doesNotMatch(present.stdout + present.stderr, /secret/)
})

test('-t finds what only shows once the configuration is put together', async () => {
  const text =
    'http { server { listen 127.0.0.1:1; location / { proxy_pass http://$host; error_page 500 $nope; } } }'
  const { status, stderr } = await run(['-tc', file('unknown-variable.conf', text)])
  assert.equal(status, 1)
  assert.match(stderr, /^evenkeel: \[emerg\] unknown "nope" variable/)
  assert.match(stderr, /test failed\n$/)
})

test('-t opens no port, so it can be run beside the running program', async () => {
  await using server = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const path = file('busy.conf', good.replace(':1;', `:${port};`))
  assert.equal((await run(['-tc', path])).status, 0)
})

test('-T prints the configuration as it was understood, and -g stands before its first line', async () => {
  const path = file('dump.conf', good)
  const { status, stdout } = await run(['-T', '-c', path, '-g', 'drain_timeout 5s;'])
  assert.equal(status, 0)
  const model = parse(stdout)
  assert.equal(model.drain_timeout, '5s')
  assert.equal(model.http.servers[0].listen[0].address, '127.0.0.1:1')
})

test('what is accepted without a meaning here is named once', async () => {
  const path = file('noticed.conf', `worker_rlimit_nofile 100;\nevents { worker_connections 5; }\n${good}`)
  const { status, stderr } = await run(['-tc', path])
  assert.equal(status, 0)
  const named = stderr.split('\n').filter((line) => line.includes('[notice]'))
  assert.ok(
    named.some((line) => /worker_connections|events/.test(line)),
    stderr,
  )
})

// Starting.

test('a bad configuration ends the start with its error', async () => {
  const path = file('no-start.conf', 'http { bogus on; }')
  assert.deepEqual(await run(['-c', path]), {
    status: 1,
    stdout: '',
    stderr: `evenkeel: [emerg] unknown directive "bogus" in ${path}:1\n`,
  })
})

test('a port that is taken ends the start with its address, for traffic and for the admin server', async () => {
  await using server = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const path = file('taken.conf', good.replace(':1;', `:${port};`))
  const traffic = await run(['-c', path])
  assert.equal(traffic.status, 1)
  const line = `evenkeel: [emerg] bind() to 127.0.0.1:${port} failed (98: Address already in use)\n`
  assert.equal(traffic.stderr, line)
  const other = file('taken-admin.conf', `admin 127.0.0.1:${port}; http { }`)
  assert.deepEqual(await run(['-c', other]), { status: 1, stdout: '', stderr: line })
})

test('the pid file names the very process that was started, and goes with it', async () => {
  const sidecar = await start(good.replace('admin off;', '').replace(':1;', ':PORT;'))
  const path = join(sidecar.folder, 'evenkeel.pid')
  assert.equal(readFileSync(path, 'utf8'), `${sidecar.pid}\n`)
  assert.equal((await fetch(sidecar.url)).status, 204)
  sidecar.signal('SIGINT')
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  assert.throws(() => readFileSync(path))
  await sidecar.stop()
})

test('a pid file that cannot be written is a warning, and the program serves', async () => {
  const port = await freePort()
  const path = file('no-pid.conf', `pid ${folder}/nowhere/x.pid;\n${good.replace(':1;', `:${port};`)}`)
  const child = spawn(launcher, ['-c', path], { stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  await new Promise<void>((resolve) =>
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      if (stderr.includes('\n')) resolve()
    }),
  )
  assert.match(
    stderr,
    /\[warn\] .*open\(\) ".*nowhere\/x\.pid" failed \(2: No such file or directory\).*"-s" will not work/,
  )
  assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 204)
  child.kill('SIGINT')
  await new Promise((resolve) => child.on('close', resolve))
})

test('-p is where relative paths start, -e where errors go', async () => {
  const prefix = join(folder, 'prefix')
  mkdirSync(prefix)
  const port = await freePort()
  writeFileSync(join(prefix, 'a.conf'), good.replace(':1;', `:${port};`))
  const child = spawn(launcher, ['-p', prefix, '-c', 'a.conf', '-e', 'errors.log'], { cwd: '/' })
  const pid = join(prefix, 'evenkeel.pid')
  while (!readIf(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
  writeFileSync(join(prefix, 'a.conf'), 'bogus;')
  child.kill('SIGHUP')
  while (!readIf(join(prefix, 'errors.log')).includes('\n'))
    await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill('SIGINT')
  await new Promise((resolve) => child.on('close', resolve))
  assert.match(readIf(join(prefix, 'errors.log')), /\[emerg\] .*unknown directive "bogus" in .*a\.conf:1/)
})

function readIf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

// Signals by -s.

test('-s reaches the running program by its pid file', async () => {
  const sidecar = await start(good.replace('admin off;', '').replace(':1;', ':PORT;'))
  const say = (word: string) => run(['-s', word, '-c', sidecar.file])
  assert.deepEqual(await say('reload'), { status: 0, stdout: '', stderr: '' })
  const end = performance.now() + 5000
  while ((await sidecar.generation()) < 2) assert.ok(performance.now() < end, sidecar.stderr)
  assert.equal((await say('reopen')).status, 0)
  assert.equal((await say('quit')).status, 0)
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  const missing = await say('reload')
  assert.equal(missing.status, 1)
  assert.equal(
    missing.stderr,
    `evenkeel: [error] open() "${sidecar.folder}/evenkeel.pid" failed (2: No such file or directory)\n`,
  )
  writeFileSync(join(sidecar.folder, 'evenkeel.pid'), `${sidecar.pid}\n`)
  const stale = await say('stop')
  assert.equal(stale.status, 1)
  assert.equal(stale.stderr, `evenkeel: [error] kill(${sidecar.pid}, SIGINT) failed (3: No such process)\n`)
  await sidecar.stop()
})
