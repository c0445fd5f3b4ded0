import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { launcher } from '../support/sidecar.ts'
import { cpuMs, load, pinned, ready } from './forward.ts'

/*
 * What traces cost: CPU time of a small GET without them, with contexts passed on and no trace kept, with one in a
 * hundred kept, and with all of them kept and sent. All programs run at once on one core and are loaded in turn, in many
 * short rounds, of which the lower quartile counts: other work on the machine only ever adds. Ratios of one run only.
 */

const rounds = 20
const roundMs = 600
const warmUpMs = 3000

const here = import.meta.dirname

interface Subject {
  readonly name: string
  readonly program: string
  readonly env: Readonly<Record<string, string>>
}

/** Starts a program that prints its port. */
async function service(file: string): Promise<{ child: ChildProcess; port: string }> {
  const child = spawn('taskset', ['-c', '1', process.execPath, join(here, file)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<string>((resolve) => {
    child.stdout.once('data', (data) => resolve(String(data).trim()))
  })
  return { child, port }
}

async function begin({ program, env }: Subject, peer: string, folder: string) {
  const port = await freePort()
  const file = join(folder, `${port}.conf`)
  writeFileSync(
    file,
    `admin off; pid ${port}.pid; http { access_log off; upstream g { server 127.0.0.1:${peer}; keepalive 64; }
     server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { proxy_pass http://g; } } }`,
  )
  const child = pinned([program, '-c', file], env)
  await ready(port)
  return { child, port }
}

/** @param words the root of another checkout, to be measured beside this one */
export async function run([other]: readonly string[]): Promise<void> {
  const [peer, receiver] = [await service('forward-peer.ts'), await service('traces-receiver.ts')]
  const kept = (ratio: string) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${receiver.port}`,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: ratio,
    // Ten times as often as by default, so that every round has its part of the sending.
    OTEL_BSP_SCHEDULE_DELAY: '500',
  })
  const subjects: Subject[] = [
    { name: 'no traces', program: launcher, env: {} },
    { name: 'traces, none kept', program: launcher, env: kept('0') },
    { name: 'traces, 1 % kept', program: launcher, env: kept('0.01') },
    { name: 'traces, all kept', program: launcher, env: kept('1') },
  ]
  if (other !== undefined) {
    subjects.unshift({ name: 'the other checkout', program: join(other, 'sidecar/evenkeel'), env: {} })
  }
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-bench-'))
  const children = [peer.child, receiver.child]
  try {
    const running = []
    for (const subject of subjects) {
      const { child, port } = await begin(subject, peer.port, folder)
      children.push(child)
      running.push({ name: subject.name, child, port, micros: [] as number[] })
    }
    for (const { port } of running) await load(port, warmUpMs)
    for (let round = 0; round < rounds; round += 1) {
      // The other way round each time: what went before leaves its marks in the caches.
      for (const { child, port, micros } of running.reverse()) {
        const before = cpuMs(child.pid!)
        const count = await load(port, roundMs)
        micros.push(((cpuMs(child.pid!) - before) * 1000) / count)
      }
    }
    const figures = running.map(({ name, micros }) => {
      const sorted = micros.sort((a, b) => a - b)
      return { name, quartile: sorted[Math.floor(rounds / 4)]!, median: sorted[Math.floor(rounds / 2)]! }
    })
    const off = figures.find(({ name }) => name === 'no traces')!
    process.stdout.write('CPU of the proxy for a small GET over kept connections\n')
    for (const { name, quartile, median } of figures) {
      process.stdout.write(
        `${name.padEnd(20)} ${quartile.toFixed(1).padStart(7)} µs (median ${median.toFixed(1)})   ${(quartile / off.quartile).toFixed(2)} × no traces\n`,
      )
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}
