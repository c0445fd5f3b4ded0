import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'

/**
 * Who may import whom: the walls of the house. A file belongs to the longest folder that is listed here, and may
 * import that folder and the ones beside it. Changing a wall is a visible line in a review.
 */
const walls: Readonly<Record<string, readonly string[]>> = {
  feedback: [],
  probes: ['feedback'],
  'sidecar/balance': ['feedback'],
  'sidecar/telemetry': ['feedback'],
  'sidecar/net': ['feedback'],
  'sidecar/tls': ['feedback', 'sidecar/telemetry', 'sidecar/net'],
  'sidecar/proxy': ['feedback', 'sidecar/balance', 'sidecar/telemetry', 'sidecar/net', 'sidecar/tls'],
  'sidecar/stream': ['feedback', 'sidecar/balance', 'sidecar/telemetry', 'sidecar/net', 'sidecar/tls'],
  'sidecar/config': ['feedback', 'probes', 'sidecar/balance', 'sidecar/proxy', 'sidecar/stream'],
  'sidecar/admin': ['feedback', 'sidecar/config'],
  'sidecar/simulate': ['feedback', 'sidecar/balance', 'sidecar/config'],
  // The program itself, and the one place where names in the model become live objects.
  sidecar: ['feedback', 'probes', 'sidecar', 'dashboards'],
  // Tools that write what Grafana and Prometheus read; the program never loads them.
  dashboards: ['feedback'],
  scripts: ['feedback', 'probes', 'sidecar', 'dashboards'],
  test: ['feedback', 'probes', 'sidecar', 'dashboards', 'scripts'],
}

/** Folders on the path of a request or beside it: what happened leaves them as numbers and records, not as telemetry. */
const quiet = [
  'feedback',
  'probes',
  'sidecar/net',
  'sidecar/tls',
  'sidecar/proxy',
  'sidecar/stream',
  'sidecar/balance',
]
const telemetry = /^(prom-client|pino|@opentelemetry\/.*)$/

/** What dashboards may know of `feedback`: the names that they show, and nothing of how the numbers come about. */
const tables = /^feedback\/(?:metrics-table|reasons|grpc-status)\.ts$/

const statement =
  /^(?:import|export)\s+(?:[\w$*{},\s]*\bfrom\s+)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]/gm

function within(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`)
}

function home(path: string): string | undefined {
  return Object.keys(walls)
    .filter((folder) => within(path, folder))
    .sort((a, b) => b.length - a.length)[0]
}

/** What is wrong with the imports and exports of one file; each entry says file and import. */
function faults(path: string, text: string, dependencies: ReadonlySet<string>): string[] {
  const found: string[] = []
  const own = home(path)
  if (own === undefined) return [`${path} is in no folder of the house`]
  for (const [, by, called] of text.matchAll(statement)) {
    const name = by ?? called ?? ''
    // A program text that a test makes has its paths filled in: it is no import of this file.
    if (name.startsWith('node:') || name.startsWith('${')) continue
    if (!name.startsWith('.')) {
      const forbidden = quiet.some((folder) => within(path, folder)) && telemetry.test(name)
      const parts = name.split('/')
      const dependency = name.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]!
      if (forbidden || !dependencies.has(dependency)) found.push(`${path} imports ${name}`)
      continue
    }
    const target = posix.join(posix.dirname(path), name)
    const allowed = within(target, own) || walls[own]!.some((folder) => within(target, folder))
    const unlisted = own === 'dashboards' && within(target, 'feedback') && !tables.test(target)
    if (!allowed || unlisted) found.push(`${path} imports ${name}`)
  }
  if (/^export default\b/m.test(text)) found.push(`${path} has a default export`)
  return found
}

const root = new URL('..', import.meta.url).pathname
// The shape is npm's.
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}
const shipped = new Set(Object.keys(manifest.dependencies))
const installed = new Set([...shipped, ...Object.keys(manifest.devDependencies)])

test('imports run one way, from what acts to what knows', () => {
  const files = globSync('{feedback,probes,sidecar,dashboards,scripts,test}/**/*.ts', { cwd: root }).sort()
  assert.ok(files.length > 20, 'the files were found')
  const found = files.flatMap((path) =>
    // Dashboards are made with a kit that the program does not ship.
    faults(
      path,
      readFileSync(root + path, 'utf8'),
      /^(test|scripts|dashboards)\//.test(path) ? installed : shipped,
    ),
  )
  assert.deepEqual(found, [])
})

const one = (path: string, text: string) => faults(path, text, new Set(['pino', 'prom-client', 'undici']))

test('an import against the direction is named with its file', () => {
  assert.deepEqual(one('feedback/bad.ts', "import { methods } from '../sidecar/balance/methods.ts'\n"), [
    'feedback/bad.ts imports ../sidecar/balance/methods.ts',
  ])
  assert.deepEqual(one('sidecar/balance/bad.ts', "import type { X } from '../proxy/x.ts'\n"), [
    'sidecar/balance/bad.ts imports ../proxy/x.ts',
  ])
  assert.deepEqual(one('sidecar/proxy/fine.ts', "import { pick } from '../balance/pick.ts'\n"), [])
  assert.deepEqual(one('sidecar/build/fine.ts', "import { pick } from '../balance/pick.ts'\n"), [])
})

test('dashboards know the names of what is measured and nothing else', () => {
  assert.deepEqual(
    one('dashboards/fine.ts', "import { metricsTable } from '../feedback/metrics-table.ts'\n"),
    [],
  )
  assert.deepEqual(one('dashboards/bad.ts', "import { Zone } from '../feedback/zone.ts'\n"), [
    'dashboards/bad.ts imports ../feedback/zone.ts',
  ])
})

test('imports over several lines, for their effect alone, at run time, and re-exports are seen', () => {
  const bad = ['sidecar/telemetry/bad.ts imports ../admin/x.ts']
  const path = 'sidecar/telemetry/bad.ts'
  assert.deepEqual(one(path, "import {\n  a,\n  b,\n} from '../admin/x.ts'\n"), bad)
  assert.deepEqual(one(path, "import '../admin/x.ts'\n"), bad)
  assert.deepEqual(one(path, `const x = await ${'import'}('../admin/x.ts')\n`), bad)
  assert.deepEqual(one(path, "export { a } from '../admin/x.ts'\n"), bad)
  assert.deepEqual(one(path, "export type * from '../admin/x.ts'\n"), bad)
})

test('the path of a request knows no metrics, traces or log library', () => {
  assert.deepEqual(one('sidecar/proxy/bad.ts', "import { Counter } from 'prom-client'\n"), [
    'sidecar/proxy/bad.ts imports prom-client',
  ])
  assert.deepEqual(one('sidecar/admin/fine.ts', "import { Counter } from 'prom-client'\n"), [])
})

test('a package that is not a declared dependency is named', () => {
  assert.deepEqual(one('sidecar/proxy/bad.ts', "import got from 'got'\n"), [
    'sidecar/proxy/bad.ts imports got',
  ])
})

test('a default export is named', () => {
  assert.deepEqual(one('probes/bad.ts', 'export default 1\n'), ['probes/bad.ts has a default export'])
})
