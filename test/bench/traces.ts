import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launcher } from '../support/sidecar.ts'
import { measure, pinned, type Subject } from './forward.ts'

/*
 * What traces cost: CPU time of a small GET without them, with one request in a hundred kept, and with all of them kept
 * and sent. Ratios of one run only.
 */

function subject(name: string, program: string, env: Readonly<Record<string, string>>): Subject {
  return {
    name,
    start(port, peer, folder) {
      const file = join(folder, 'evenkeel.conf')
      writeFileSync(
        file,
        `admin off; pid evenkeel.pid; http { access_log off; upstream g { server 127.0.0.1:${peer}; keepalive 64; }
         server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { proxy_pass http://g; } } }`,
      )
      return pinned([program, '-c', file], env)
    },
  }
}

/** @param words the root of another checkout, to be measured beside this one */
export async function run([other]: readonly string[]): Promise<void> {
  const receiver = spawn(
    'taskset',
    ['-c', '1', process.execPath, new URL('./traces-receiver.ts', import.meta.url).pathname],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const port = await new Promise<string>((resolve) => {
    receiver.stdout.once('data', (data) => resolve(String(data).trim()))
  })
  const kept = (ratio: string) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: ratio,
  })
  try {
    await measure([
      ...(other === undefined ? [] : [subject('another checkout', join(other, 'sidecar/evenkeel'), {})]),
      subject('traces, all kept', launcher, kept('1')),
      subject('traces, 1 % kept', launcher, kept('0.01')),
      subject('traces, none kept', launcher, kept('0')),
      subject('no traces', launcher, {}),
    ])
  } finally {
    receiver.kill('SIGKILL')
  }
}
