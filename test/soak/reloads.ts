import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../support/backend.ts'
import { dial } from '../support/client.ts'
import type { PeerStatus } from '../support/invariants.ts'
import { residentBytes } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { now } from './deed.ts'
import { Counters, metrics } from './gauges.ts'

export interface ReloadOptions {
  readonly seconds: number
  readonly threads: number
  readonly everyMs: number
  readonly clients: number
  readonly say: (text: string) => void
}

/**
 * By how much an average may differ from before a reload to after it, as a ratio: between the two it takes in some
 * answers of a busy machine. One that is lost begins anew at 0 or at the mean of the group, which is far from these.
 */
const mostJump = 1.6

/** A reload every so often under load: no failed request, and nothing that was learnt or counted is lost. */
export async function reloads(options: ReloadOptions): Promise<boolean> {
  const { say, clients, seconds, everyMs, threads } = options
  // Their times are far apart, and long beside what a busy machine adds.
  await using near = await backend({ after: 20, body: 'near' })
  await using far = await backend({ after: 120, body: 'far' })
  await using failing = await backend({ status: 503, body: 'no' })
  await using sometimes = await backend({ after: 40, body: 'sometimes' })
  // The harness would keep every request of a minute.
  const forget = setInterval(() => {
    for (const one of [near, far, failing, sometimes]) one.requests.length = 0
  }, 1000)
  const text = (round: number) => `
worker_processes ${threads};
http {
  access_log off;
  upstream u {
    zone u 64k;
    least_time header;
    server ${near.address} max_fails=3;
    server ${far.address} max_fails=3;
    server ${failing.address} max_fails=2 fail_timeout=600s;
    ${round % 2 === 0 ? '' : `server ${sometimes.address};`}
  }
  server {
    listen 127.0.0.1:PORT;
    status_zone front;
    keepalive_requests 1000;
    location / { proxy_pass http://u; proxy_next_upstream error timeout http_503 non_idempotent; }
  }
}`
  await using sidecar = await start(text(0))
  const counters = new Counters()
  const failures: string[] = []
  let requests = 0
  let over = false
  const ask = async (serial: number) => {
    let client = await dial(sidecar.port)
    while (!over) {
      try {
        const body = serial % 2 === 0 ? {} : { method: 'POST', body: 'x'.repeat(1000) }
        const reply = await client.ask('/', body)
        requests += 1
        if (reply.status !== 200 || !reply.complete) failures.push(`status ${reply.status}`)
        if (reply.header('connection') === 'close') {
          client.close()
          client = await dial(sidecar.port)
        }
      } catch (error) {
        failures.push(String(error))
        client.close()
        client = await dial(sidecar.port)
      }
    }
    client.close()
  }
  const done = Promise.all(Array.from({ length: clients }, (_, i) => ask(i)))
  await sleep(Math.min(3000, everyMs * 1.5))
  const first = await sidecar.generation()
  const findings: string[] = []
  const jumps: number[] = []
  let round = 0
  say('  reload  requests  failed  generation  resident  averages before → after, ms (near, far, failing)')
  for (const end = now() + seconds * 1000; now() < end; ) {
    const slot = now() + everyMs
    round += 1
    const before = await peersOf(sidecar)
    await sidecar.reload(text(round))
    const after = await peersOf(sidecar)
    findings.push(...counters.next(without(await metrics(sidecar), sometimes.address)))
    const averages: string[] = []
    for (const address of [near.address, far.address, failing.address]) {
      const [a, b] = [before[address]!, after[address]!]
      averages.push(`${Math.round(a.health.header_time)} → ${Math.round(b.health.header_time)}`)
      if (b.selected.total < a.selected.total) findings.push(`selections of ${address} went back`)
      if (b.health.fails < a.health.fails) findings.push(`failures of ${address} went back`)
      if (address === failing.address) {
        if (b.state !== 'unavailable') findings.push(`${address} is ${b.state} after reload ${round}`)
        continue
      }
      const jump = ratio(a.health.header_time, b.health.header_time)
      jumps.push(jump)
      if (jump > mostJump) findings.push(`average of ${address}: ${averages.at(-1)} at reload ${round}`)
    }
    const resident = (await residentBytes(sidecar.pid)) / 2 ** 20
    say(
      `${String(round).padStart(8)}${String(requests).padStart(10)}${String(failures.length).padStart(8)}` +
        `${String(await sidecar.generation()).padStart(12)}${`${resident.toFixed(0)}M`.padStart(10)}  ${averages.join(', ')}`,
    )
    await sleep(Math.max(0, slot - now()))
  }
  over = true
  await done
  clearInterval(forget)
  const generations = (await sidecar.generation()) - first
  if (generations !== round) findings.push(`${round} reloads made ${generations} generations`)
  const zone = await sidecar.json<{ total: number }>('/status/http/server_zones/front/requests/')
  if (zone.total !== requests) findings.push(`the zone has counted ${zone.total} requests of ${requests}`)
  for (const peer of Object.values(await peersOf(sidecar))) {
    if (peer.selected.current !== 0) findings.push(`${peer.selected.current} requests still in progress`)
  }
  if (failures.length > 0) findings.push(`${failures.length} failed: ${[...new Set(failures)].slice(0, 5)}`)
  say(
    `${requests} requests, ${failures.length} failed; ${round} reloads, ${generations} generations; ` +
      `${counters.compared} counters compared; averages changed by a factor of ${Math.max(...jumps).toFixed(2)} at most (${mostJump} is a jump)`,
  )
  for (const finding of findings) say(`  ! ${finding}`)
  say(findings.length === 0 ? 'good: nothing failed and nothing was lost' : 'not good')
  return findings.length === 0
}

const peersOf = (sidecar: Sidecar) =>
  sidecar.json<Record<string, PeerStatus>>('/status/http/upstreams/u/peers/')

const ratio = (a: number, b: number) => (a > 0 && b > 0 ? Math.max(a / b, b / a) : Number.POSITIVE_INFINITY)

function without(values: Map<string, number>, address: string): Map<string, number> {
  for (const series of values.keys()) if (series.includes(address)) values.delete(series)
  return values
}
