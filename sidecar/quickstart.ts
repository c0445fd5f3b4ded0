// `npm start`: small peers on this machine, and the program in front of them as quickstart.conf says. Another file
// can be named as the argument: a demo peer is started for each of its `server` lines that points to loopback.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { formatAddress, listenAddress, serverAddress } from './config/address.ts'
import { ConfigError } from './config/error.ts'
import { load } from './config/load.ts'
import type { Model } from './config/model.ts'
import { type DemoPeer, startDemoPeer, tempers } from './simulate/demo-peers.ts'
import { failureText } from './telemetry/system-error.ts'

const here = import.meta.dirname
const file = resolve(process.argv[2] ?? join(here, 'quickstart.conf'))
const model = await read(file)
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
  // A terminal sends Ctrl-C to both: the program stops by itself, and this process ends after it.
  process.on('SIGINT', () => {})
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) {
    process.on(signal, () => child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal))
  }
  // The pid file is written once every listener is open.
  while (!existsSync(pid)) await wait(20)
  ready = true
  console.log(introduction(model, peers))
}

function introduction(model: Model, peers: readonly DemoPeer[]): string {
  const said = peers.map(({ port, temper: { name, mean, failing } }) => {
    const fails = failing > 0 ? `, ${failing * 100} % of the answers are a 503` : ''
    return `  127.0.0.1:${port}  ${name}: ${mean} ms on average${fails}`
  })
  const proxy = reachable(model.http?.servers?.[0]?.listen?.[0]?.address ?? '*:80')
  const [group = 'demo'] = Object.keys(model.http?.upstreams ?? {})
  const first = model.admin === 'off' ? undefined : (model.admin?.[0]?.address ?? '127.0.0.1:9900')
  const admin = first === undefined ? undefined : reachable(first)
  const lines = [
    '',
    'Peers:',
    ...said,
    '',
    'Send them requests through the proxy:',
    `  curl -i ${proxy}/`,
    `  for i in $(seq 100); do curl -s ${proxy}/; done | sort | cut -d' ' -f1 | uniq -c`,
  ]
  if (admin !== undefined) {
    lines.push(
      '',
      'See what it has learnt, and why a request would go where:',
      `  ${admin}/  lists what the admin server has`,
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
