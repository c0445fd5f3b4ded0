import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { dashboards } from '../../dashboards/build.ts'
import { load } from '../../sidecar/config/load.ts'
import { promtool } from '../support/prometheus.ts'

const root = new URL('../../', import.meta.url).pathname
const folder = join(root, 'dashboards')

/** The parts of a compose file that are asked about here. */
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}
interface Service {
  readonly image: string
  readonly network_mode?: string
  readonly ports?: readonly string[]
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
}

function read<T>(name: string): T {
  // The shape is that of the file's own format.
  return parse(readFileSync(join(folder, name), 'utf8'), { strict: true, uniqueKeys: true }) as T
}

const { services, volumes } = read<Compose>('compose.yaml')

/** Source and target of what a service mounts. */
function mounts({ volumes: list = [] }: Service): { source: string; target: string; readonly: boolean }[] {
  return list.map((text) => {
    const [source = '', target = '', mode] = text.split(':')
    return { source, target, readonly: mode === 'ro' }
  })
}

test('what is mounted is there, and cannot be written to', () => {
  for (const [name, service] of Object.entries(services)) {
    assert.ok(mounts(service).length > 0, name)
    for (const { source, readonly } of mounts(service)) {
      if (source.startsWith('.')) {
        assert.ok(existsSync(join(folder, source)), `${name}: ${source}`)
        assert.ok(readonly, `${name}: ${source}`)
      } else assert.ok(source in volumes, `${name}: ${source}`)
    }
  }
})

test('images have a version, and nothing listens off loopback', () => {
  for (const [name, { image, network_mode, ports }] of Object.entries(services)) {
    assert.match(image, /^[a-z]+\/[a-z]+:v?\d+\.\d+\.\d+$/, name)
    assert.equal(network_mode, 'host', name)
    assert.equal(ports, undefined, name)
  }
  assert.ok(services['prometheus']!.command!.includes('--web.listen-address=127.0.0.1:9090'))
  assert.equal(services['grafana']!.environment!['GF_SERVER_HTTP_ADDR'], '127.0.0.1')
  const tempo = readFileSync(join(folder, 'compose/tempo.yaml'), 'utf8')
  const addresses = [...tempo.matchAll(/(?:address|endpoint): (\S+)/g)].map(([, address]) => address!)
  assert.equal(addresses.length, 4)
  for (const address of addresses) assert.match(address, /^127\.0\.0\.1(?::\d+)?$/)
})

test('Prometheus takes its configuration with the rules, laid out as in its container', async () => {
  const etc = mkdtempSync(join(tmpdir(), 'evenkeel-compose-'))
  try {
    for (const { source, target } of mounts(services['prometheus']!)) {
      if (!source.startsWith('.')) continue
      mkdirSync(dirname(join(etc, target)), { recursive: true })
      cpSync(join(folder, source), join(etc, target), { recursive: true })
    }
    const said = await promtool('check', 'config', join(etc, 'etc/prometheus/prometheus.yaml'))
    assert.match(said, /SUCCESS: 2 rule files found/)
    assert.match(said, /prometheus\.yaml is valid prometheus config file syntax/)
  } finally {
    rmSync(etc, { recursive: true })
  }
})

test('Prometheus asks where the quick start listens, under the name that alerts ask for', async () => {
  const { scrape_configs } = read<{
    scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[]
  }>('compose/prometheus.yaml')
  const { model } = await load(join(root, 'sidecar/quickstart.conf'))
  assert.ok(model.admin !== 'off')
  assert.deepEqual(
    scrape_configs.map(({ job_name, static_configs }) => [job_name, static_configs[0]!.targets]),
    [['evenkeel', [model.admin![0]!.address]]],
  )
})

test('Grafana finds its sources and dashboards', () => {
  const { datasources } = read<{
    datasources: { uid: string; type: string; url: string; jsonData?: Record<string, unknown> }[]
  }>('compose/datasources.yaml')
  assert.deepEqual(
    datasources.map(({ uid, type, url }) => `${uid} ${type} ${url}`),
    ['prometheus prometheus http://127.0.0.1:9090', 'tempo tempo http://127.0.0.1:3200'],
  )
  const [metrics] = datasources
  const { global } = read<{ global: { scrape_interval: string } }>('compose/prometheus.yaml')
  assert.equal(metrics!.jsonData!['timeInterval'], global.scrape_interval)
  assert.deepEqual(metrics!.jsonData!['exemplarTraceIdDestinations'], [
    { name: 'trace_id', datasourceUid: 'tempo', urlDisplayLabel: 'Open the trace' },
  ])
  const { providers } = read<{ providers: { options: { path: string } }[] }>('compose/dashboards.yaml')
  const mounted = mounts(services['grafana']!).find(({ target }) => target === providers[0]!.options.path)
  assert.ok(mounted)
  for (const name of dashboards.keys()) assert.ok(existsSync(join(folder, mounted.source, `${name}.json`)))
  const home = services['grafana']!.environment!['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']!
  assert.ok(existsSync(home.replace(mounted.target, join(folder, mounted.source))), home)
})
