import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { usage } from '../soak/gauges.ts'
import { crowd, EchoPeer, faultsOf, type Talker } from '../support/crowd.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { optionsOf, whole } from './options.ts'

const usageText = `usage: npm run bench -- sessions [--idle N] [--active N] [--seconds S] [--threads N]
  TCP sessions through the real program to three peers that echo: those that say nothing, those that talk meanwhile,
  and what the first cost of memory. Fails where a byte was lost.`

interface Options {
  readonly idle: number
  readonly active: number
  readonly seconds: number
  readonly threads: number
}

function read(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      idle: { type: 'string', default: '5000' },
      active: { type: 'string', default: '2000' },
      seconds: { type: 'string', default: '20' },
      threads: { type: 'string', default: '2' },
    },
  })
  return {
    idle: whole('idle', values.idle, 1, 50_000),
    active: whole('active', values.active, 1, 50_000),
    seconds: whole('seconds', values.seconds, 1, 600),
    threads: whole('threads', values.threads, 1, 64),
  }
}

/** Says something of up to 4 KiB again and again. @returns bytes that came back */
async function talk(talker: Talker, until: number, seed: number): Promise<number> {
  let bytes = 0
  for (let i = 0; performance.now() < until && talker.fault === undefined; i++) {
    const length = 1 + ((seed * 97 + i * 613) & 4095)
    await talker.say(length)
    bytes += length
    // Two thousand that never rest would measure this process.
    await sleep(200 + ((seed * 13 + i * 29) & 255))
  }
  return bytes
}

/** The least of some looks, garbage collected. */
async function resident(sidecar: Sidecar, folder: string): Promise<{ resident: number; heap: number }> {
  await sleep(2000)
  const looks = []
  for (let i = 0; i < 6; i++) {
    await sleep(300)
    looks.push(await usage(sidecar, folder))
  }
  return {
    resident: Math.min(...looks.map((look) => look.resident)),
    heap: Math.min(...looks.map((look) => look.heap ?? Number.POSITIVE_INFINITY)),
  }
}

export async function run(words: readonly string[]): Promise<void> {
  const options = optionsOf(read, words, usageText)
  if (options === undefined) return
  const { idle, active, seconds, threads } = options
  await using peers = new AsyncDisposableStack()
  const echoes: EchoPeer[] = []
  for (let i = 0; i < 3; i++) echoes.push(peers.use(await new EchoPeer().listen()))
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-sessions-'))
  peers.defer(() => rm(folder, { recursive: true, force: true }))
  const watch = new URL('../soak/heap-watch.ts', import.meta.url).pathname
  const sidecar = await start(
    `worker_processes ${threads};
     stream { access_log off; proxy_timeout 600s;
       upstream echo { zone echo 1m; least_conn; ${echoes.map(({ address }) => `server ${address};`).join(' ')} }
       server { listen 127.0.0.1:PORT; proxy_pass echo; } }`,
    {
      startMs: 60_000,
      env: {
        NODE_OPTIONS: `--expose-gc --import=${watch}`,
        SOAK_HEAP_FOLDER: folder,
        SOAK_HEAP_EVERY: '250',
      },
    },
  )
  try {
    const warm = await crowd(sidecar.port, 50, 100_000)
    const before = await resident(sidecar, folder)
    const silent = await crowd(sidecar.port, idle)
    const after = await resident(sidecar, folder)
    const each = (of: 'resident' | 'heap') => ((after[of] - before[of]) / idle / 1024).toFixed(1)
    console.log(
      `${idle} idle sessions, ${threads} threads: ${each('resident')} KiB resident each (both connections), ` +
        `${each('heap')} KiB of it heap; resident ${(after.resident / 1048576).toFixed(0)} MiB in all`,
    )
    const talkers = await crowd(sidecar.port, active, 200_000)
    const begun = performance.now()
    const bytes = await Promise.all(talkers.map((talker, i) => talk(talker, begun + seconds * 1000, i)))
    const sum = bytes.reduce((all, one) => all + one, 0)
    const spread = echoes.map(({ sockets }) => sockets.size).join(', ')
    console.log(
      `${active} active sessions beside them for ${seconds} s: ${(sum / 1048576).toFixed(0)} MiB came back; connections of the peers ${spread}`,
    )
    const all = [...warm, ...silent, ...talkers]
    // Those that were silent speak once more: none was lost meanwhile.
    for (let i = 0; i < silent.length; i += 200) {
      await Promise.all(silent.slice(i, i + 200).map((talker) => talker.say(16)))
    }
    await Promise.all(all.map((talker) => talker.end()))
    const faults = faultsOf(all)
    console.log(
      faults.length === 0
        ? `no loss: each of ${all.length} sessions got back what it said`
        : faults.join('\n'),
    )
    if (faults.length > 0) process.exitCode = 1
  } finally {
    await sidecar.stop()
  }
}
