import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { launcher } from '../support/sidecar.ts'

/*
 * What a proxied request costs: CPU time of the proxy's process for small GETs over kept connections, each proxy
 * pinned to one core in turn, peer and load on another. Only the ratios of one run mean anything.
 */

const connections = 16
const rounds = 3
const roundMs = 2500

/** A proxy to measure. */
export interface Subject {
  readonly name: string
  /** @param folder for what it needs of files; gone afterwards */
  start(port: number, peer: number, folder: string): ChildProcess
}

const node = process.execPath

const subjects: readonly Subject[] = [
  {
    name: 'evenkeel',
    start(port, peer, folder) {
      const file = join(folder, 'evenkeel.conf')
      writeFileSync(
        file,
        `admin off; pid evenkeel.pid; http { access_log off; upstream g { server 127.0.0.1:${peer}; keepalive 64; }
         server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { proxy_pass http://g; } } }`,
      )
      return pinned([launcher, '-c', file])
    },
  },
  {
    name: 'evenkeel, JSON access log',
    start(port, peer, folder) {
      const file = join(folder, 'evenkeel.conf')
      writeFileSync(
        file,
        `admin off; http { access_log ${join(folder, 'access.log')}; upstream g { server 127.0.0.1:${peer}; keepalive 64; }
         server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { proxy_pass http://g; } } }`,
      )
      return pinned([launcher, '-c', file])
    },
  },
  {
    name: 'node:http and undici',
    start: (port, peer) =>
      pinned([node, new URL('./forward-plain.ts', import.meta.url).pathname, `${port}`, `${peer}`]),
  },
  {
    name: 'nginx',
    start(port, peer, folder) {
      const file = join(folder, 'nginx.conf')
      writeFileSync(
        file,
        `daemon off; master_process off; pid ${join(folder, 'nginx.pid')}; error_log /dev/null; events {}
         http { access_log off; upstream g { server 127.0.0.1:${peer}; keepalive 64; }
         server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://g; } } }`,
      )
      return pinned(['nginx', '-p', folder, '-c', file])
    },
  },
]

/** Starts a program on the core that proxies are measured on. */
export function pinned(command: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn('taskset', ['-c', '0', ...command], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  })
}

/** User and system time of a process so far, milliseconds (`proc(5)`, at the usual 100 ticks a second). */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Keeps every connection busy with one GET after the other. @returns responses counted */
export function load(port: number, ms: number): Promise<number> {
  const request = Buffer.from('GET /some/path?x=1 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: bench\r\n\r\n')
  const until = performance.now() + ms
  let count = 0
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(request))
      socket.setNoDelay(true)
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        // The peer's body is the only line that says hello; its end is the end of the response in either framing.
        if (!/hello\n(?:\r\n0\r\n\r\n)?$/.test(text)) return
        text = ''
        count += 1
        if (performance.now() < until) socket.write(request)
        else {
          socket.destroy()
          resolve()
        }
      })
      socket.on('error', reject)
      socket.on('end', () => reject(new Error('the proxy closed a connection')))
    })
  return Promise.all(Array.from({ length: connections }, one)).then(() => count)
}

/** Waits until somebody listens. */
export async function ready(port: number): Promise<void> {
  for (let i = 0; i < 200; i += 1) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        resolve(true)
      })
      socket.on('error', () => resolve(false))
    })
    if (open) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('a proxy did not start')
}

function present(command: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Prints microseconds of CPU a request, and ratios to the last subject that is there. */
export async function run(): Promise<void> {
  const peer = spawn('taskset', ['-c', '1', node, new URL('./forward-peer.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const peerPort = await new Promise<number>((resolve) => {
    peer.stdout!.once('data', (data) => resolve(Number(String(data))))
  })
  const results = new Map<string, number[]>()
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        if (subject.name === 'nginx' && !present('nginx')) continue
        const folder = mkdtempSync(join(tmpdir(), 'evenkeel-bench-'))
        const port = await freePort()
        const child = subject.start(port, peerPort, folder)
        try {
          await ready(port)
          await load(port, roundMs / 2)
          const before = cpuMs(child.pid!)
          const count = await load(port, roundMs)
          const micros = ((cpuMs(child.pid!) - before) * 1000) / count
          results.set(subject.name, [...(results.get(subject.name) ?? []), micros])
          process.stdout.write(
            `round ${round + 1}/${rounds}  ${subject.name}: ${micros.toFixed(1)} µs, ${count} requests\n`,
          )
        } finally {
          child.kill('SIGKILL')
          rmSync(folder, { recursive: true, force: true })
        }
      }
    }
  } finally {
    peer.kill('SIGKILL')
  }
  const median = (values: readonly number[]) =>
    [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
  const yardstick = [...results].at(-1)!
  process.stdout.write('\nCPU of the proxy for a small GET over kept connections, median of the rounds\n')
  for (const [name, values] of results) {
    const micros = median(values)
    const ratio = micros / median(yardstick[1])
    process.stdout.write(
      `${name.padEnd(28)} ${micros.toFixed(1).padStart(7)} µs   ${ratio.toFixed(2)} × ${yardstick[0]}\n`,
    )
  }
}
