// The manifests against the program that they start, and their queries against a real evaluation.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { metricLabels, metricsTable } from '../../feedback/metrics-table.ts'
import { verdicts } from '../../feedback/verdict.ts'
import { ensure, pathOf } from '../../scripts/ensure.ts'
import { type Backends, backends } from '../support/backend.ts'
import { dial } from '../support/client.ts'
import { compiled, launcher, type Sidecar, start } from '../support/sidecar.ts'

/** What of an object is read here. The shapes are Kubernetes', Argo's and Flagger's. */
interface Manifest {
  readonly file: string
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Labels }
  readonly data?: Readonly<Record<string, string>>
  readonly spec: Spec
}

type Labels = Readonly<Record<string, string>>

interface Spec {
  readonly selector: Labels & { readonly matchLabels: Labels }
  readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: PodSpec }
  readonly ports: readonly {
    readonly name: string
    readonly port: number
    readonly targetPort: number | string
  }[]
  readonly endpoints: readonly { readonly port: string; readonly path: string }[]
  readonly podMetricsEndpoints: readonly { readonly port: string; readonly path: string }[]
  readonly args: readonly { readonly name: string; readonly value: string }[]
  readonly metrics: readonly ArgoMetric[]
  readonly query: string
  readonly analysis: {
    readonly metrics: readonly {
      readonly templateRef: { readonly name: string }
      readonly templateVariables: Labels
      readonly interval: string
    }[]
  }
}

interface PodSpec {
  readonly terminationGracePeriodSeconds: number
  readonly initContainers: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[]
}

interface Container {
  readonly args: readonly string[]
  readonly restartPolicy?: string
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly startupProbe: HttpProbe
  readonly readinessProbe: HttpProbe
  readonly livenessProbe: HttpProbe
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
}

interface HttpProbe {
  readonly httpGet: { readonly path: string; readonly port: number }
}

interface ArgoMetric {
  readonly name: string
  readonly count: number
  readonly successCondition: string
  readonly failureCondition: string
  readonly inconclusiveLimit: number
  readonly provider: {
    readonly web: { readonly url: string; readonly jsonPath: string }
    readonly prometheus: { readonly query: string }
  }
}

const folder = new URL('../../dashboards/kubernetes/', import.meta.url).pathname
const files = globSync('*.yaml', { cwd: folder }).sort()
const documents = files.flatMap((file) =>
  parseAllDocuments(readFileSync(folder + file, 'utf8')).map((document) => ({ file, document })),
)
// The shapes are looked at where they are used.
const manifests = documents.map(({ file, document }) => ({ ...document.toJSON(), file }) as Manifest)

function manifest(kind: string, name: string): Manifest {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}

const config = manifest('ConfigMap', 'storefront-evenkeel').data!['evenkeel.conf']!
const pod = manifest('Deployment', 'storefront').spec.template
const [sidecar] = pod.spec.initContainers as [Container]
const [app] = pod.spec.containers as [Container]
/** The port of the read-only listener. */
const port = Number(/admin 0\.0\.0\.0:(\d+) readonly;/.exec(config)![1])

let peers: Backends
let program: Sidecar
before(async () => {
  await ensure(['promtool'])
  peers = await backends([{ body: 'ok' }, { body: 'ok' }])
  program = await start(configured(), { env: { POD_NAME: 'storefront-1' } })
})
after(async () => {
  await program?.stop()
  await peers?.[Symbol.asyncDispose]()
})

/** The configuration with addresses in the place of names that only a cluster has. */
function resolved(): string {
  const [stable, canary] = peers.list.map(({ address }) => address)
  return config
    .replace('catalog-stable.shop.svc.cluster.local:80', stable!)
    .replace('catalog-canary.shop.svc.cluster.local:80', canary!)
}

/** And with free ports. */
function configured(): string {
  return resolved()
    .replace('127.0.0.1:9900', '127.0.0.1:ADMIN')
    .replace(`0.0.0.0:${port}`, '127.0.0.1:PORT2')
    .replace('127.0.0.1:8080', '127.0.0.1:PORT')
    .replace('redis.shop.svc.cluster.local:6379', '127.0.0.1:1')
    .replace('pid /tmp/evenkeel.pid;', '')
}

/** Asks the read-only listener under a name. */
async function ask(target: string, host: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: program.ports['PORT2']!, path: target, headers: { host } }
    request(options, (response) => {
      let body = ''
      response.on('data', (piece) => {
        body += piece
      })
      response.on('end', () => resolve({ status: response.statusCode!, body }))
    })
      .on('error', reject)
      .end()
  })
}

test('every file can be read, and every object has what it is found by', () => {
  assert.ok(files.length >= 7)
  for (const { file, document } of documents) {
    assert.deepEqual([...document.errors, ...document.warnings], [], file)
  }
  const seen = new Set<string>()
  for (const { file, apiVersion, kind, metadata } of manifests) {
    assert.ok(apiVersion && kind && metadata.name, file)
    assert.equal(metadata.namespace, 'shop', `${file}: ${kind} ${metadata.name}`)
    const name = `${kind} ${metadata.name}`
    assert.ok(!seen.has(name), `${name} stands twice`)
    seen.add(name)
  }
})

test('the configuration is one that the program takes', async () => {
  const path = mkdtempSync(join(tmpdir(), 'evenkeel-manifest-'))
  const file = join(path, 'evenkeel.conf')
  writeFileSync(file, resolved())
  const env = { ...process.env, ...compiled, POD_NAME: 'storefront-1' }
  const { stderr } = await promisify(execFile)(launcher, ['-t', '-c', file], { env })
  rmSync(path, { recursive: true })
  assert.equal(
    stderr,
    `evenkeel: the configuration file ${file} syntax is ok\nevenkeel: configuration file ${file} test is successful\n`,
  )
})

test('the sidecar starts before the app, with the configuration that is mounted for it', () => {
  assert.equal(sidecar.restartPolicy, 'Always')
  const [option, file] = sidecar.args
  const mount = sidecar.volumeMounts.find(({ mountPath }) => file === `${mountPath}/evenkeel.conf`)
  assert.ok(option === '-c' && mount, String(sidecar.args))
  const volume = pod.spec.volumes.find(({ name }) => name === mount.name)
  assert.equal(volume?.configMap?.name, 'storefront-evenkeel')
  for (const [, name = ''] of config.matchAll(/\$\{ENV:(\w+)\}/g)) {
    assert.ok(
      sidecar.env.some((one) => one.name === name),
      name,
    )
  }
  const address = /listen (\S+);/.exec(config)![1]
  assert.ok(
    app.env.some(({ value }) => value === `http://${address}`),
    'the app sends to the sidecar',
  )
  // Only this folder can be written.
  const [, pid] = /pid (\/tmp)\//.exec(config)!
  assert.ok(sidecar.volumeMounts.some(({ mountPath }) => mountPath === pid))
})

test('app and sidecar have the time to end one after the other', () => {
  const [, drain] = /drain_timeout (\d+)s;/.exec(config)!
  assert.ok(
    app.lifecycle.preStop.sleep.seconds + 20 + Number(drain) <= pod.spec.terminationGracePeriodSeconds,
  )
})

test('kubelet and Prometheus ask ports and paths that the read-only listener serves', async () => {
  const paths: string[] = []
  for (const probe of [sidecar.startupProbe, sidecar.readinessProbe, sidecar.livenessProbe]) {
    assert.equal(probe.httpGet.port, port)
    paths.push(probe.httpGet.path)
  }
  const [own] = sidecar.ports
  assert.equal(own!.containerPort, port)
  const service = manifest('Service', 'storefront-evenkeel')
  const [exposed] = service.spec.ports
  assert.deepEqual([exposed!.port, exposed!.targetPort], [port, port])
  for (const [name, value] of Object.entries(service.spec.selector)) {
    assert.equal(pod.metadata.labels[name], value)
  }
  const monitor = manifest('ServiceMonitor', 'storefront-evenkeel')
  assert.equal(monitor.spec.endpoints[0]!.port, exposed!.name)
  assert.deepEqual(monitor.spec.selector.matchLabels, service.metadata.labels)
  paths.push(monitor.spec.endpoints[0]!.path)
  const podMonitor = manifest('PodMonitor', 'storefront-evenkeel')
  assert.equal(podMonitor.spec.podMetricsEndpoints[0]!.port, own!.name)
  assert.deepEqual(podMonitor.spec.selector.matchLabels, pod.metadata.labels)
  paths.push(podMonitor.spec.podMetricsEndpoints[0]!.path)
  for (const path of paths) {
    // They ask by the pod's address.
    assert.equal((await ask(path, `10.1.2.3:${port}`)).status, 200, path)
  }
  assert.equal((await ask('/config', `10.1.2.3:${port}`)).status, 404)
})

/** Fills in the arguments of a template with their defaults. */
function withArgs({ spec }: Manifest, text: string): string {
  return text.replaceAll(/\{\{args\.([\w-]+)\}\}/g, (_, name: string) => {
    const arg = spec.args.find((one) => one.name === name)
    if (arg === undefined) throw new Error(`no argument ${name}`)
    return arg.value
  })
}

test('Argo Rollouts asks by a name that is known, and its conditions tell the verdicts apart', async () => {
  const template = manifest('AnalysisTemplate', 'evenkeel-verdict')
  const [metric] = template.spec.metrics
  const { url, jsonPath } = metric!.provider.web
  const { host, pathname, search, port: asked } = new URL(withArgs(template, url))
  assert.equal(Number(asked), port)
  const service = manifest('Service', 'storefront-evenkeel').metadata
  assert.ok(host.startsWith(`${service.name}.${service.namespace}.svc`))
  assert.equal((await ask(pathname + search, 'evil.example')).status, 421)
  const { status, body } = await ask(pathname + search, host)
  assert.equal(status, 200, body)
  const connection = await dial(program.port)
  for (let i = 0; i < 20; i++) assert.equal((await connection.ask('/')).status, 200)
  connection.close()

  // The field of the answer, as client-go's JSONPath has it.
  const [, field] = /^\{\$\.(\w+)\}$/.exec(jsonPath)!
  const answer: Record<string, unknown> = JSON.parse(body)
  assert.equal(answer[field!], 'inconclusive')
  const holds = (condition: string, result: string) => {
    const [, word] = /^result == "(\w+)"$/.exec(condition)!
    return result === word
  }
  const phases = verdicts.map((verdict) => {
    const [success, failure] = [metric!.successCondition, metric!.failureCondition].map((condition) =>
      holds(condition, verdict),
    )
    return failure ? 'Failed' : success ? 'Successful' : 'Inconclusive'
  })
  assert.deepEqual(phases, ['Successful', 'Failed', 'Inconclusive'])
  // Only as many inconclusive ones as there are measurements pause the rollout.
  assert.equal(metric!.inconclusiveLimit, metric!.count - 1)
})

/** Every query, with the values that it is asked with: what Argo and Flagger do with their templates. */
const argo = manifest('AnalysisTemplate', 'evenkeel-prometheus')
const argoQueries = new Map(
  argo.spec.metrics.map(({ name, provider }) => [name, withArgs(argo, provider.prometheus.query)]),
)
const flaggerQueries = new Map(
  manifest('Canary', 'catalog').spec.analysis.metrics.map(({ templateRef, templateVariables, interval }) => {
    const { query } = manifest('MetricTemplate', templateRef.name).spec
    const values: Labels = { namespace: 'shop', interval }
    const text = query.replaceAll(/\{\{ (?:variables\.)?(\w+) \}\}/g, (_, name: string) => {
      const value = templateVariables[name] ?? values[name]
      if (value === undefined) throw new Error(`no variable ${name}`)
      return value
    })
    // It sends a query in one line.
    return [templateRef.name, text.replaceAll(/\s+/g, ' ')]
  }),
)
const queries = new Map([...argoQueries, ...flaggerQueries])

test('queries name metrics and labels that there are', () => {
  assert.equal(queries.size, 7)
  const names = new Map<string, readonly string[]>()
  for (const { name, type, labels } of metricsTable) {
    if (type !== 'histogram') names.set(name, labels)
    else for (const end of ['_bucket', '_sum', '_count']) names.set(name + end, [...labels, 'le'])
  }
  const known = new Set<string>([...metricLabels, 'namespace', 'le'])
  for (const [where, query] of queries) {
    const series = [...query.matchAll(/(evenkeel_\w+)\{([^}]*)\}/g)]
    assert.ok(series.length > 0, where)
    for (const [, name = '', inner = ''] of series) {
      const labels = names.get(name)
      assert.ok(labels !== undefined, `${where}: ${name}`)
      for (const [, label = ''] of inner.matchAll(/(\w+)(?:=|!)/g)) {
        assert.ok(
          known.has(label) && (label === 'namespace' || labels.includes(label as never)),
          `${where}: ${label}`,
        )
      }
    }
  }
})

/** Series that count so much a minute each, for half an hour. */
interface Situation {
  readonly series: Readonly<Record<string, number>>
  /** What each query gives; undefined: nothing, or not a number. */
  readonly gives: Readonly<Record<string, number | undefined>>
}

const of = (track: string, more = '') =>
  `{namespace="shop",upstream="catalog",peer="p",track="${track}"${more}}`

const ofTrack = (track: string, more = '') => of(track, more).replace(',peer="p"', '')

/** Attempts of a track and how long they took, in the second bucket of two. */
function traffic(track: string, attempts: number, ms: readonly [number, number]): Record<string, number> {
  const bucket = (le: string) => `evenkeel_peer_response_seconds_bucket${of(track, `,le="${le}"`)}`
  return {
    [`evenkeel_peer_attempts_total${of(track)}`]: attempts,
    [`evenkeel_peer_succeeded_total${of(track)}`]: attempts,
    [`evenkeel_peer_responses_total${of(track, ',code="200"')}`]: attempts,
    [`evenkeel_upstream_responses_total${ofTrack(track, ',code="200"')}`]: attempts,
    [`evenkeel_upstream_judged_attempts_total${ofTrack(track)}`]: attempts,
    [`evenkeel_upstream_failed_attempts_total${ofTrack(track)}`]: 0,
    [bucket(String(ms[0] / 1000))]: 0,
    [bucket(String(ms[1] / 1000))]: attempts,
    [bucket('+Inf')]: attempts,
  }
}

const situations: Readonly<Record<string, Situation>> = {
  'nothing was ever heard of': {
    series: {},
    gives: {
      attempts: 0,
      'failed-attempts': undefined,
      errors: undefined,
      p99: undefined,
      'evenkeel-success-rate': 100,
      'evenkeel-p99': 0,
      'evenkeel-attempts': 0,
    },
  },
  'a canary without traffic': {
    series: { ...traffic('stable', 600, [100, 250]), ...traffic('canary', 0, [100, 250]) },
    gives: {
      attempts: 0,
      'failed-attempts': undefined,
      errors: undefined,
      p99: undefined,
      'evenkeel-success-rate': 100,
      'evenkeel-p99': 0,
      'evenkeel-attempts': 0,
    },
  },
  'a canary that is well, and errors that have never been counted': {
    series: { ...traffic('stable', 600, [100, 250]), ...traffic('canary', 60, [100, 250]) },
    gives: {
      attempts: 600,
      'failed-attempts': 0,
      errors: 0,
      p99: 1,
      'evenkeel-success-rate': 100,
      'evenkeel-p99': 248.5,
      'evenkeel-attempts': 120,
    },
  },
  'a canary that fails, behind retries and before clients, and is slower': {
    series: {
      ...traffic('stable', 600, [100, 250]),
      ...traffic('canary', 60, [250, 500]),
      [`evenkeel_upstream_failed_attempts_total${ofTrack('canary')}`]: 12,
      [`evenkeel_upstream_responses_total${ofTrack('canary', ',code="503"')}`]: 3,
    },
    gives: {
      attempts: 600,
      'failed-attempts': 0.2,
      errors: 3 / 63,
      p99: 497.5 / 248.5,
      'evenkeel-success-rate': 80,
      'evenkeel-p99': 497.5,
      'evenkeel-attempts': 120,
    },
  },
}

test('queries give one number each, and none that misleads where there is no traffic', async () => {
  const path = mkdtempSync(join(tmpdir(), 'evenkeel-queries-'))
  const tests = Object.values(situations).map(({ series, gives }) => {
    assert.deepEqual(Object.keys(gives).sort(), [...queries.keys()].sort())
    return {
      interval: '15s',
      input_series: Object.entries(series).map(([name, minutely]) => ({
        series: name,
        values: `0+${minutely / 4}x120`,
      })),
      promql_expr_test: Object.entries(gives).map(([name, value]) => {
        const query = queries.get(name)!
        // What is not a number is not the same as itself; and of numbers the last digits do not matter.
        const expr = value === undefined ? `(${query}) == (${query})` : `round((${query}), 0.0001)`
        const samples = value === undefined ? [] : [{ labels: '{}', value: Math.round(1e4 * value) / 1e4 }]
        return { expr, eval_time: '29m', exp_samples: samples }
      }),
    }
  })
  const file = join(path, 'queries.yaml')
  // JSON is YAML too.
  writeFileSync(file, JSON.stringify({ rule_files: [], evaluation_interval: '15s', tests }))
  const run = promisify(execFile)(pathOf('promtool'), ['test', 'rules', file])
  const { stdout, stderr } = await run.catch((error: { stdout: string; stderr: string }) => error)
  rmSync(path, { recursive: true })
  assert.match(stdout, /SUCCESS/, `${stdout}\n${stderr}`)
})

test('conditions on Prometheus need a number before they say anything', () => {
  for (const { name, successCondition, failureCondition } of argo.spec.metrics) {
    for (const condition of [successCondition, failureCondition]) {
      if (condition === 'false') continue
      assert.match(
        condition,
        /^len\(result\) > 0 && !isNaN\(result\[0\]\) && result\[0\] (?:<=|>=|>) [\d.]+$/,
        name,
      )
    }
    // No value meets both.
    const limits = [successCondition, failureCondition].map((one) => /result\[0\] (\S+) (\S+)$/.exec(one))
    if (limits[1]) assert.deepEqual([limits[0]![1], limits[0]![2]], ['<=', limits[1][2]])
  }
})
