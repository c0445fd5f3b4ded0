// `npm start`: small peers on this machine, the program in front of them as quickstart.conf says, and a few requests a
// second, so that there is something to watch. Another file can be named as the argument: a demo peer is started for
// each of its `server` lines that points to loopback, and requests are sent where its first server has `location /demo/`.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { formatAddress, listenAddress, serverAddress } from './config/address.ts'
import { ConfigError } from './config/error.ts'
import { listenTexts } from './config/listen-range.ts'
import { load } from './config/load.ts'
import type { Model } from './config/model.ts'
import { type DemoLoad, startDemoLoad } from './simulate/demo-load.ts'
import { type DemoPeer, startDemoPeer, tempers } from './simulate/demo-peers.ts'
import { failureText } from './telemetry/system-error.ts'

/** Requests a second that are sent without being asked for, unless the environment says otherwise; 0: none. */
const demoRate = 5
const mostDemoRate = 1000
/** Where they are sent: a location of its own can keep them out of the log. */
const demoPath = '/demo/'

const here = import.meta.dirname
const file = resolve(process.argv[2] ?? join(here, 'quickstart.conf'))
const model = await read(file)
const rate = wantedRate(model)
const peers = await startPeers(model)
await run(model)

async function read(path: string): Promise<Model> {
  try {
    return (await load(path)).model
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return fail(error.message)
  }
}

async function startPeers({ http }: Model): Promise<DemoPeer[]> {
  const started: DemoPeer[] = []
  for (const group of Object.values(http?.upstreams ?? {})) {
    for (const line of group.servers ?? []) {
      const address = serverAddress(line.address)
      if (address.kind !== 'tcp' || !/^(?:127\.|localhost$|::1$)/.test(address.host)) continue
      const temper = tempers[started.length % tempers.length]!
      try {
        started.push(await startDemoPeer(address.host, address.port, temper))
      } catch (error) {
        fail(`a demo peer cannot listen on ${line.address} (${failureText(error)})`)
      }
    }
  }
  return started
}

/** Runs the program until it ends, by itself or by a signal to either process, and ends with its exit code. */
async function run(model: Model): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-quickstart-'))
  const pid = join(folder, 'evenkeel.pid')
  const child = spawn(join(here, 'evenkeel'), ['-c', file, '-g', `pid ${pid};`], { stdio: 'inherit' })
  let ready = false
  child.on('exit', (code, signal) => {
    rmSync(folder, { recursive: true, force: true })
    if (!ready) fail('the program did not start')
    process.exit(signal === null ? (code ?? 1) : 1)
  })
  // A terminal sends Ctrl-C to both, and the program stops by itself; from elsewhere it comes to this process alone.
  process.on('SIGINT', () => setTimeout(() => child.kill('SIGINT'), 300))
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    process.on(signal, () => child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal))
  }
  // The pid file is written once every listener is open.
  while (!existsSync(pid)) await wait(20)
  ready = true
  let load: DemoLoad | undefined
  if (rate > 0) load = startDemoLoad(proxyUrl(model) + demoPath, rate)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)
    process.on(signal, () => load?.stop())
  console.log(introduction(model, peers))
}

/** How many requests a second are to be sent; none where there is no place for them. */
function wantedRate({ http }: Model): number {
  const text = process.env['EVENKEEL_DEMO_RATE']
  const rate = text === undefined || text === '' ? demoRate : Number(text)
  if (!(rate >= 0 && rate <= mostDemoRate)) {
    console.error(
      `quick start: EVENKEEL_DEMO_RATE is "${text}": it has to be a number from 0 to ${mostDemoRate}`,
    )
    process.exit(1)
  }
  return http?.servers?.[0]?.locations?.[demoPath] === undefined ? 0 : rate
}

/** Address of the proxy, without a slash at its end. */
function proxyUrl({ http }: Model): string {
  const [first = '*:80'] = listenTexts(http?.servers?.[0]?.listen?.[0]?.address ?? '*:80')
  return reachable(first)
}

/** Address of the admin server that has the page; undefined where there is none. */
function adminUrl({ admin }: Model): string | undefined {
  if (admin === 'off') return undefined
  const lines = admin ?? [{ address: '127.0.0.1:9900' }]
  const line = lines.find((one) => !('readonly' in one && one.readonly === true))
  return line && reachable(line.address)
}

function introduction(model: Model, peers: readonly DemoPeer[]): string {
  const said = peers.map(({ port, temper: { name, mean, failing } }) => {
    const fails = failing > 0 ? `, ${failing * 100} % of the answers are a 503` : ''
    return `  127.0.0.1:${port}  ${name}: ${mean} ms on average${fails}`
  })
  const proxy = proxyUrl(model)
  const [group = 'demo'] = Object.keys(model.http?.upstreams ?? {})
  const admin = adminUrl(model)
  const lines = ['']
  if (admin?.startsWith('http')) lines.push(`Open ${admin}/ to watch.`, '')
  if (rate > 0) {
    lines.push(
      `It asks itself: ${rate} requests a second go to ${proxy}${demoPath}, so that there is something to see.`,
      'EVENKEEL_DEMO_RATE=0 npm start sends none.',
      '',
    )
  }
  lines.push(
    'Peers:',
    ...said,
    '',
    'Send them requests through the proxy:',
    `  curl -i ${proxy}/`,
    `  for i in $(seq 100); do curl -s ${proxy}/; done | sort | cut -d' ' -f1 | uniq -c`,
  )
  if (admin !== undefined) {
    lines.push(
      '',
      'See what it has learnt, and why a request would go where:',
      `  curl ${admin}/                       # lists what the admin server has`,
      `  curl '${admin}/explain/${group}?format=text'`,
      `  curl ${admin}/status/http/upstreams/${group}/`,
      `  curl ${admin}/metrics`,
    )
  }
  lines.push('', `The configuration is ${file}`, 'Ctrl-C stops everything.', '')
  return lines.join('\n')
}

/** The address as a client on this machine would write it. */
function reachable(text: string): string {
  const address = listenAddress(text)
  if (address.kind === 'unix') return formatAddress(address)
  const host = address.host === '*' ? '127.0.0.1' : address.host === '::' ? '::1' : address.host
  return `http://${formatAddress({ ...address, host })}`
}

function fail(reason: string): never {
  console.error(`quick start: ${reason}`)
  console.error(`quick start: if a port is taken, stop what listens there or change the port in ${file}`)
  process.exit(1)
}
