import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { usage } from '../soak/gauges.ts'
import { eventually } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'

/*
 * What the program needs of memory for each connection, request in progress, peer, download and upload: the difference
 * between some and many of them, with garbage collected. Each line has a program of its own.
 */

const kib = 1024
const mib = kib * kib
const collectEveryMs = 250

/** What is in use, bytes. */
interface Memory {
  readonly heap: number
  /** Buffers outside of the heap. */
  readonly external: number
  readonly resident: number
}

/** One line of the table. */
interface Subject {
  readonly name: string
  /** How many there are as the measurement begins, and at its end. */
  readonly few: number
  readonly many: number
  /** A group `u` with the peer, and a server at `PORT`; given the peer's address and the count. */
  configuration(peer: string, count: number): string
  /** Makes so many; undefined where the configuration alone makes the difference. */
  make?(town: Town, count: number): Promise<void>
  /** What bounds it, in words of the configuration. */
  readonly bound: string
}

interface Town {
  readonly sidecar: Sidecar
  readonly sockets: Socket[]
  readonly peer: Peer
}

/** A peer that answers `/now`, never answers `/never`, sends 32 MiB for `/big` and takes no bodies at `/sink`. */
class Peer {
  readonly sockets = new Set<Socket>()
  requests = 0
  readonly #server = createServer((socket) => this.#serve(socket))

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1', 4096)
    await once(this.#server, 'listening')
    // A TCP server has a port.
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  #serve(socket: Socket): void {
    this.sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.sockets.delete(socket))
    socket.on('data', (data) => {
      const [, path] = /^\w+ (\/\w+)/.exec(data.toString('latin1', 0, 100)) ?? []
      if (path === undefined) return
      this.requests += 1
      if (path === '/now') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx')
      if (path === '/wait') {
        setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'), 1500)
      }
      if (path === '/sink') socket.pause()
      if (path === '/big') send(socket, 32 * mib)
    })
  }
}

const block = Buffer.alloc(64 * kib, 'x')

function send(socket: Socket, length: number): void {
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
  let left = length
  const more = () => {
    while (left > 0) {
      left -= block.length
      if (!socket.write(block)) {
        socket.once('drain', more)
        return
      }
    }
  }
  more()
}

/** Opens connections a few at a time, so that none has to be tried again. */
async function open(town: Town, count: number, each: (socket: Socket) => void): Promise<void> {
  for (let i = 0; i < count; i += 50) {
    const some = Array.from({ length: Math.min(50, count - i) }, () =>
      connect(town.sidecar.port, '127.0.0.1'),
    )
    for (const socket of some) {
      socket.on('error', () => {})
      town.sockets.push(socket)
      each(socket)
    }
    await Promise.all(some.map((socket) => once(socket, 'connect')))
  }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\n\r\n`

function plain(peer: string, more = '', group = ''): string {
  return `http { access_log off; keepalive_timeout 600s; proxy_read_timeout 600s; ${more}
    upstream u { zone u 1m; server ${peer} max_fails=0; ${group} }
    server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } location /own { return 200 "x"; } } }`
}

/** Readers that take nothing after the head. */
function downloads(buffers: string): Omit<Subject, 'name' | 'bound'> {
  return {
    few: 20,
    many: 200,
    configuration: (peer) => plain(peer, `${buffers} send_timeout 600s;`),
    async make(town, count) {
      await open(town, count, (socket) => {
        socket.pause()
        socket.write(get('/big'))
      })
      await sleep(1500)
    },
  }
}

/** @param length of the body; as much of it is sent as is taken */
function uploads(path: string, length: number, more = ''): Omit<Subject, 'name' | 'bound'> {
  return {
    few: 20,
    many: 200,
    configuration: (peer) =>
      plain(peer, `client_max_body_size 64m; client_body_timeout 600s; proxy_send_timeout 600s; ${more}`),
    async make(town, count) {
      await open(town, count, (socket) => {
        socket.write(`POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Length: ${length}\r\n\r\n`)
        for (let sent = 0; sent < Math.min(length, 4 * mib); sent += block.length) socket.write(block)
      })
      await sleep(1500)
    },
  }
}

function configuredPeers(threads: number): Omit<Subject, 'name' | 'bound'> {
  return {
    few: 100,
    many: 10_000,
    configuration: (_peer, count) => {
      const servers = Array.from({ length: count }, (_, i) => {
        return `server 127.${1 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}:9;`
      })
      return `worker_processes ${threads}; http { access_log off; upstream u { zone u 1m; least_time header; ${servers.join(' ')} }
        server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } } }`
    },
  }
}

const subjects: readonly Subject[] = [
  {
    name: 'idle connection of a client',
    few: 100,
    many: 3000,
    configuration: (peer) => plain(peer),
    async make(town, count) {
      let answered = 0
      await open(town, count, (socket) => {
        socket.on('data', () => {
          answered += 1
        })
        socket.write(get('/now'))
      })
      await eventually('all are answered', () => answered >= count, 60_000)
    },
    bound: 'number: `ulimit -n`; time: `keepalive_timeout`, `keepalive_requests`',
  },
  {
    name: 'idle connection kept to a peer',
    few: 50,
    many: 1000,
    configuration: (peer) => plain(peer, '', 'keepalive 5000; keepalive_timeout 600s;'),
    async make(town, count) {
      let answered = 0
      await open(town, count, (socket) => {
        socket.on('data', () => {
          answered += 1
          socket.destroy()
        })
        socket.write(get('/wait'))
      })
      await eventually('all are answered', () => answered >= count, 60_000)
    },
    bound: '`keepalive`, a group and thread; `keepalive_timeout`',
  },
  {
    name: 'request in progress that waits for its peer, with both connections',
    few: 50,
    many: 2000,
    configuration: (peer) => plain(peer),
    async make(town, count) {
      const before = town.peer.requests
      await open(town, count, (socket) => socket.write(get('/never')))
      await eventually('all have come', () => town.peer.requests - before >= count, 60_000)
    },
    bound: '`max_conns`, `proxy_read_timeout`; its head: `large_client_header_buffers`',
  },
  ...[1, 4].map((threads) => ({
    name: `peer configured, ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
    ...configuredPeers(threads),
    bound: 'the configuration',
  })),
  {
    name: 'download that its client does not read, `proxy_buffers 8 16k` (default)',
    ...downloads(''),
    bound: '`proxy_buffers` and one read of 64k; `send_timeout`',
  },
  {
    name: 'the same download with `proxy_buffers 4 4k`',
    ...downloads('proxy_buffers 4 4k;'),
    bound: 'the same',
  },
  {
    name: 'the same download with `proxy_buffers 16 64k`',
    ...downloads('proxy_buffers 16 64k;'),
    bound: 'the same',
  },
  {
    name: 'the same download with `proxy_buffering off`',
    ...downloads('proxy_buffering off;'),
    bound: 'one read of 64k',
  },
  {
    name: 'upload of 32 MiB that its peer does not take',
    ...uploads('/sink', 32 * mib),
    bound: 'two reads of 64k; `proxy_send_timeout`, `client_body_timeout`',
  },
  {
    name: 'the same upload with `proxy_request_buffering off`',
    ...uploads('/sink', 32 * mib, 'proxy_request_buffering off;'),
    bound: 'the same',
  },
  {
    name: 'upload of 64 KiB that waits for its answer, `proxy_replay_buffer 64k` (default)',
    ...uploads('/never', 64 * kib),
    bound: '`proxy_replay_buffer`',
  },
  {
    name: 'upload of 1 MiB that waits for its answer, `proxy_replay_buffer 1m`',
    ...uploads('/never', mib, 'proxy_replay_buffer 1m;'),
    bound: '`proxy_replay_buffer`',
  },
]

/** How long what is in use may take to be the same for some looks, milliseconds. */
const patienceMs = 15_000

/** What is in use once garbage has been collected and nothing moves any more. */
async function settled(sidecar: Sidecar, folder: string): Promise<Memory> {
  await sleep(4 * collectEveryMs)
  const end = performance.now() + patienceMs
  const seen: Memory[] = []
  for (;;) {
    await sleep(collectEveryMs)
    const { heap = Number.POSITIVE_INFINITY, external, resident } = await usage(sidecar, folder)
    seen.push({ heap, external, resident })
    const last = seen.slice(-6)
    const least = (of: keyof Memory) => Math.min(...last.map((one) => one[of]))
    const most = Math.max(...last.map((one) => one.external))
    const still = last.length === 6 && most - least('external') < 0.01 * most
    if (still || performance.now() > end) {
      return { heap: least('heap'), external: least('external'), resident: least('resident') }
    }
  }
}

async function withProgram<T>(
  text: string,
  work: (sidecar: Sidecar, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-memory-'))
  const watch = new URL('../soak/heap-watch.ts', import.meta.url).pathname
  const env = {
    NODE_OPTIONS: `--expose-gc --import=${watch}`,
    SOAK_HEAP_FOLDER: folder,
    SOAK_HEAP_EVERY: String(collectEveryMs),
  }
  try {
    const sidecar = await start(text, { env, startMs: 60_000 })
    try {
      return await work(sidecar, folder)
    } finally {
      await sidecar.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** @returns bytes for each one */
async function measure(subject: Subject): Promise<Memory> {
  const { few, many, make } = subject
  const peer = new Peer()
  const address = await peer.listen()
  const sockets: Socket[] = []
  try {
    const each = (before: Memory, after: Memory) => ({
      heap: (after.heap - before.heap) / (many - few),
      external: (after.external - before.external) / (many - few),
      resident: (after.resident - before.resident) / (many - few),
    })
    if (!make) {
      const [before, after] = [few, many].map((count) =>
        withProgram(subject.configuration(address, count), settled),
      )
      return each(await before!, await after!)
    }
    return await withProgram(subject.configuration(address, many), async (sidecar, folder) => {
      const town = { sidecar, sockets, peer }
      await make(town, few)
      const before = await settled(sidecar, folder)
      await make(town, many - few)
      return each(before, await settled(sidecar, folder))
    })
  } finally {
    for (const socket of sockets) socket.destroy()
    peer.close()
  }
}

/** Prints a table in Markdown, one line as each is measured. */
export async function run(words: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...words], options: { only: { type: 'string', default: '' } } })
  const size = (bytes: number) => `${(bytes / kib).toFixed(1)}`
  console.log('| KiB for each | heap | outside of it | resident | bounded by |\n|---|---:|---:|---:|---|')
  for (const subject of subjects) {
    if (!subject.name.includes(values.only)) continue
    const { heap, external, resident } = await measure(subject)
    console.log(
      `| ${subject.name} | ${size(heap)} | ${size(external)} | ${size(resident)} | ${subject.bound} |`,
    )
  }
}
