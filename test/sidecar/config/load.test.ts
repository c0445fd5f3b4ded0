import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { ConfigError } from '../../../sidecar/config/error.ts'
import { load, loadText } from '../../../sidecar/config/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-config-'))
after(() => rmSync(folder, { recursive: true }))

/** Writes files below the folder, and returns the first one's path. */
function files(name: string, contents: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(contents)) {
    const full = join(folder, name, path)
    mkdirSync(dirname(full), { recursive: true })
    writeFileSync(full, text)
  }
  return join(folder, name, Object.keys(contents)[0]!)
}

function errorOf(run: () => unknown): ConfigError {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error
  }
  throw new assert.AssertionError({ message: 'nothing was thrown' })
}

test('includes files by name and by pattern, relative to the prefix, in order', () => {
  const main = files('includes', {
    'evenkeel.conf':
      'http { include groups/*.conf; include none/*.conf; map $uri $x { include keys.map; } server { include locations.yaml; } }',
    'groups/b.conf': 'upstream b { include servers/one; }',
    'groups/a.conf': 'upstream a { server 127.0.0.1:1; }',
    'servers/one': 'server 127.0.0.1:2;\nserver 127.0.0.1:3;\n',
    'keys.map': 'a 1;',
    'locations.yaml': 'locations:\n  /: { proxy_pass: http://b }\n',
  })
  const { model, files: read } = load(main)
  assert.deepEqual(Object.keys(model.http?.upstreams ?? {}), ['a', 'b'])
  assert.deepEqual(
    model.http?.upstreams?.['b']?.servers?.map((server) => server.address),
    ['127.0.0.1:2', '127.0.0.1:3'],
  )
  assert.equal(model.http?.maps?.['$x']?.values?.['a'], '1')
  assert.equal(model.http?.servers?.[0]?.locations?.['/']?.proxy_pass, 'http://b')
  const names = read.map((file) => file.path.slice(join(folder, 'includes').length + 1))
  assert.deepEqual(names, [
    'evenkeel.conf',
    'groups/a.conf',
    'groups/b.conf',
    'servers/one',
    'keys.map',
    'locations.yaml',
  ])
})

test('includes from YAML both YAML and nginx syntax, at any level', () => {
  const main = files('from-yaml', {
    'evenkeel.yaml':
      'include: main.yml\nhttp:\n  include: [groups.conf, more.json]\n  maps:\n    $x: { source: $uri, include: keys.yaml }\n',
    'main.yml': 'worker_processes: 2\n',
    'groups.conf': 'upstream a { server 127.0.0.1:1; }',
    'more.json': '{"servers": [{"listen": "8080"}], "upstreams": {"b": {"servers": ["127.0.0.1:2"]}}}',
    'keys.yaml': 'k: v\n',
  })
  const { model } = load(main)
  assert.equal(model.worker_processes, 2)
  assert.deepEqual(Object.keys(model.http?.upstreams ?? {}), ['a', 'b'])
  assert.equal(model.http?.servers?.[0]?.listen?.[0]?.address, '*:8080')
  assert.equal(model.http?.maps?.['$x']?.values?.['k'], 'v')
})

test('takes the prefix for relative includes where one is given', () => {
  const main = files('prefix', { 'conf/evenkeel.conf': 'include more.conf;', 'more.conf': 'pid x;' })
  assert.equal(load(main, { prefix: join(folder, 'prefix') }).model.pid, 'x')
})

test('tells the file and line of a mistake in an included file', () => {
  const main = files('included-mistake', {
    'evenkeel.conf': 'http {\n include a.conf;\n}',
    'a.conf': '\n\nupstream a { }\n',
  })
  const error = errorOf(() => load(main))
  assert.equal(error.file, join(folder, 'included-mistake', 'a.conf'))
  assert.equal(error.line, 3)
  assert.equal(error.text, 'no servers are inside upstream')
  assert.equal(error.message, `${error.file}:3: no servers are inside upstream`)
})

test('refuses includes that go round in a circle', () => {
  const main = files('circle', { 'a.conf': 'include b.conf;', 'b.conf': 'include a.conf;' })
  assert.match(errorOf(() => load(main)).text, /^"include" of "[ab]\.conf" goes round in a circle$/)
})

test('says why a file cannot be read, without a line for the main one', () => {
  const error = errorOf(() => load('/nowhere/evenkeel.conf'))
  assert.equal(
    error.message,
    '/nowhere/evenkeel.conf: open() "/nowhere/evenkeel.conf" failed (2: No such file or directory)',
  )
  assert.match(errorOf(() => load(folder)).text, /^open\(\) ".*" failed \(21: /)
})

test('reads the directives of the command line before the file', () => {
  const main = files('globals', { 'evenkeel.conf': 'worker_processes 2;' })
  assert.deepEqual(load(main, { globals: 'pid run/x.pid; daemon off;' }).model, {
    pid: 'run/x.pid',
    worker_processes: 2,
  })
  const twice = errorOf(() => load(main, { globals: 'worker_processes 1;' }))
  assert.equal(twice.message, `${main}:1: "worker_processes" directive is duplicate`)
  const wrong = errorOf(() => load(main, { globals: 'pid' }))
  assert.equal(wrong.message, 'command line: unexpected end of file, expecting ";" or "}"')
})

test('takes the syntax from the ending of the file', () => {
  const yaml = files('endings', {
    'a.yml': 'pid: x',
    'b.json': '{"pid": "x"}',
    'c.conf': 'pid x;',
    other: 'pid x;',
  })
  for (const name of ['a.yml', 'b.json', 'c.conf', 'other']) {
    assert.deepEqual(load(join(dirname(yaml), name)).model, { pid: 'x' })
  }
})

test('tells where a part of the model stood', () => {
  const text = 'http {\n upstream a {\n  server 127.0.0.1:1\n   weight=2;\n  hash $x;\n }\n}'
  const { model, at } = loadText(text, 'x.conf', 'nginx')
  const group = model.http?.upstreams?.['a']
  assert.ok(group?.servers)
  assert.deepEqual([at(group)?.line, at(group.servers[0]!)?.line, at(group, 'hash')?.line], [2, 3, 5])
  assert.equal(at({}), undefined)
})

test('names what has no effect once, however often it stands there', () => {
  const { notices } = loadText(
    'http { sendfile on;\n server { sendfile off; }\n server { sendfile on; } }',
    'x.conf',
    'nginx',
  )
  assert.deepEqual(notices, ['"sendfile" directive has no effect here in x.conf:1'])
})

test('warns of a server name that another server has on the same address', () => {
  const text = 'http { server { listen 80; server_name a b; }\n server { listen *:80; server_name b; } }'
  assert.deepEqual(loadText(text, 'x.conf', 'nginx').warnings, [
    'conflicting server name "b" on 0.0.0.0:80, ignored in x.conf:2',
  ])
})

test('warns of a word that stands twice in a list and of an expression that is never reached', () => {
  const text =
    'http { proxy_next_upstream error error;\n server { location ~ a { }\n location ~ a { return 200; } } }'
  const { model, warnings } = loadText(text, 'x.conf', 'nginx')
  assert.deepEqual(warnings, [
    'duplicate value "error" in x.conf:1',
    'duplicate location "~ a" is ignored in x.conf:3',
  ])
  assert.deepEqual(model.http?.proxy_next_upstream, ['error'])
  assert.deepEqual({ ...model.http?.servers?.[0]?.locations }, { '~ a': {} })
})

test('refuses blocks and aliases without end instead of running out of memory', () => {
  const deep = 'location / {'.repeat(5000)
  assert.equal(
    errorOf(() => loadText(`http { server { ${deep}`, 'x.conf', 'nginx')).text,
    'blocks are too deep',
  )
  const level = (inner: string) =>
    `{ locations: { ${['/', '/a', '/b', '/c', '/d', '/e'].map((path) => `${path}: ${inner}`).join(', ')} } }`
  const levels = Array.from({ length: 9 }, (_, i) => `  - &l${i} ${level(i === 0 ? '{}' : `*l${i - 1}`)}`)
  const bomb = `http:\n servers:\n${levels.join('\n')}\n`
  assert.equal(errorOf(() => loadText(bomb, 'x.yaml', 'yaml')).text, 'too many aliases')
})

test('keeps a message with control characters on one line', () => {
  const error = errorOf(() => loadText('http { server { listen "80 \\n[emerg]"; } }', 'x.conf', 'nginx'))
  assert.ok(!/[\r\n]/.test(error.message), error.message)
})
