import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { Client, dial, type Reply } from '../../support/client.ts'
import { type Lab, type Logged, lab } from '../../support/invariants.ts'

/*
 * A peer that stops, resets or closes its side, wherever it is in a request or its answer: what the client gets, what
 * the log says, who is asked next, who is blamed, and what becomes of the connection. Each case has a group of its own,
 * whose peers are addresses of the same two backends, so that all of them can go on at once.
 */

const hows = ['stall', 'reset', 'fin'] as const
type How = (typeof hows)[number]

/** How long a peer may be silent, milliseconds. */
const patience = 1000
/** What may be sent again, bytes. */
const replay = 65_536

interface Phase {
  readonly name: string
  /** Whether the case needs a connection that has carried a request before. */
  readonly reused?: true
  /** Whether the peer acts before a request could be read off the connection. */
  readonly raw?: 'at once' | 'after a part'
  /** What of the answer comes first. */
  readonly said: string
  /** The head has come, so that the client has it. */
  readonly begun?: true
  /** A body that ends with the connection: a FIN makes it whole. */
  readonly endless?: true
}

const head = (fields: string) => `HTTP/1.1 200 OK\r\n${fields}\r\n\r\n`
const length = head('Content-Length: 10')
const chunked = head('Transfer-Encoding: chunked')

const early: readonly Phase[] = [
  { name: 'as it accepts', raw: 'at once', said: '' },
  { name: 'after a part of the head', raw: 'after a part', said: '' },
  { name: 'after the request', said: '' },
  { name: 'after a part of the status line', said: 'HTTP/1.1 2' },
  { name: 'after a part of its head', said: 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX-Part' },
  { name: 'after an interim answer', said: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' },
  { name: 'after the request on a kept connection', reused: true, said: '' },
  { name: 'after a part of the status line on a kept connection', reused: true, said: 'HTT' },
]
const late: readonly Phase[] = [
  { name: 'after its head with a length', begun: true, said: length },
  { name: 'after its head with chunks', begun: true, said: chunked },
  { name: 'after its head without a length', begun: true, endless: true, said: head('X-A: 1') },
  { name: 'in a body with a length', begun: true, said: `${length}12345` },
  { name: 'one byte before the end of a body with a length', begun: true, said: `${length}123456789` },
  {
    name: 'in a body that ends with the connection',
    begun: true,
    endless: true,
    said: `${head('X-A: 1')}12`,
  },
  { name: 'in a chunk', begun: true, said: `${chunked}a\r\n12345` },
  { name: 'after a chunk’s bytes', begun: true, said: `${chunked}a\r\n1234567890` },
  { name: 'between chunks', begun: true, said: `${chunked}a\r\n1234567890\r\n` },
  { name: 'in the size of a chunk', begun: true, said: `${chunked}a\r\n1234567890\r\n1` },
  { name: 'after the last chunk’s size', begun: true, said: `${chunked}a\r\n1234567890\r\n0\r\n` },
  { name: 'in its trailers', begun: true, said: `${chunked}0\r\nX-Sum: 1` },
  { name: 'in its body on a kept connection', begun: true, reused: true, said: `${length}12345` },
]

interface Asked {
  readonly name: string
  readonly method: string
  readonly body?: string | Buffer | readonly string[]
}

const get: Asked = { name: 'GET', method: 'GET' }
const post: Asked = { name: 'POST with a length', method: 'POST', body: 'pay' }
const put: Asked = { name: 'PUT in chunks', method: 'PUT', body: ['in ', 'pieces'] }
const large: Asked = { name: 'PUT of more than is kept', method: 'PUT', body: Buffer.alloc(4 * replay, 'x') }

interface Case {
  readonly number: number
  readonly phase: Phase
  readonly how: How
  readonly asked: Asked
  /** Whether another peer is there to go on to. */
  readonly two: boolean
}

const cases: Case[] = []
for (const [phases, askeds] of [
  [early, [get, post, put, large]],
  [late, [get, post]],
] as const) {
  for (const phase of phases) {
    for (const how of hows) {
      for (const asked of askeds) {
        for (const two of [false, true]) cases.push({ number: cases.length, phase, how, asked, two })
      }
    }
  }
}

const address = (net: number, { number }: Case) => `127.${net}.${number >> 8}.${number & 255}`

let script: Backend
let good: Backend
let raw: Server
let front: Lab
/** Connections that have carried a whole request. */
const used = new Set<number>()

function act(socket: Socket, how: How): void {
  if (how === 'reset') socket.resetAndDestroy()
  else if (how === 'fin') socket.end()
}

/** The peer's part of a case. What is sent anew on a fresh connection has an answer. */
async function fault(x: Exchange, { phase, how }: Case): Promise<void> {
  await x.body()
  if (phase.reused && !used.has(x.connection)) return x.reply({ body: 'ok' })
  if (phase.said !== '') await x.send(phase.said)
  act(x.socket, how)
  await x.gone
}

function accept(socket: Socket): void {
  const [, , high, low] = (socket.localAddress ?? '').split('.').map(Number)
  const it = cases[256 * (high ?? 0) + (low ?? 0)]
  socket.on('error', () => {})
  socket.on('end', () => socket.end())
  if (it === undefined) return
  if (it.phase.raw === 'at once') act(socket, it.how)
  else {
    socket.once('readable', () => {
      socket.read(10)
      act(socket, it.how)
    })
  }
}

before(async () => {
  const by = (x: Exchange) => cases[Number(x.target.split('/')[1])]!
  script = await backend(
    async (x) => {
      if (!x.target.endsWith('/ok')) return fault(x, by(x))
      await x.reply({ body: 'ok' })
      used.add(x.connection)
    },
    { host: '0.0.0.0' },
  )
  good = await backend({ body: 'good' }, { host: '0.0.0.0' })
  raw = createServer({ allowHalfOpen: true, noDelay: true }, accept)
  raw.listen(0, '0.0.0.0').unref()
  await once(raw, 'listening')
  const at = raw.address()
  const rawPort = typeof at === 'object' && at ? at.port : 0
  const groups = cases.map((one) => {
    const port = one.phase.raw ? rawPort : script.port
    const other = one.two ? `server ${address(2, one)}:${good.port} backup;` : ''
    return `upstream u${one.number} { keepalive 2; server ${address(1, one)}:${port} max_fails=1 fail_timeout=60s; ${other} }`
  })
  const locations = cases.map(({ number }) => `location /${number}/ { proxy_pass http://u${number}; }`)
  front = await lab(
    `proxy_read_timeout ${patience}ms; proxy_send_timeout ${patience}ms;
     client_max_body_size 0; proxy_replay_buffer ${replay};
     proxy_next_upstream_budget off;
     ${groups.join('\n')}
     server { listen 127.0.0.1:PORT; ${locations.join('\n')} }`,
    [],
    // Connections are kept by each thread for itself.
    { main: 'worker_processes 1;' },
  )
})

after(async () => {
  await front?.sidecar.stop()
  await script?.stop()
  await good?.stop()
  raw?.close()
})

interface Outcome {
  readonly reply: Reply | 'none'
  /** The connection of the peer that the fault happened on, and the one of the request after it. */
  readonly connection: number | undefined
  readonly next: number | undefined
  readonly after: number
}

async function run(one: Case): Promise<Outcome> {
  const { number, phase, asked } = one
  const seen = (target: string) => script.requests.filter((request) => request.target === target)
  if (phase.reused) {
    using first = await dial(front.port)
    assert.equal((await first.ask(`/${number}/ok`)).status, 200)
  }
  const client = await dial(front.port)
  await client.write(Client.bytes(`/${number}/x`, asked))
  const reply = await client.reply(asked.method).catch(() => 'none' as const)
  client.close()
  const connection = seen(`/${number}/x`)[0]?.connection
  if (phase.raw) return { reply, connection: undefined, next: undefined, after: 0 }
  using second = await dial(front.port)
  const answer = await second.ask(`/${number}/ok`)
  return { reply, connection, next: seen(`/${number}/ok`).at(-1)?.connection, after: answer.status }
}

/**
 * What must come of a case.
 * @param attempts how many there were: a reset may come before anything could be sent, and then every request can go on
 */
function expected({ phase, how, asked, two }: Case, attempts: number) {
  const repeatable = asked === get || asked === put
  if (phase.begun) {
    const whole = phase.endless === true && how === 'fin'
    const reason = whole ? '-' : how === 'stall' ? 'body_timeout' : 'body_cut'
    return { status: 200, whole, reasons: [reason], blamed: !whole }
  }
  if (phase.reused && phase.said === '' && how !== 'stall') {
    // Nobody's fault: the same peer is asked once more, where that is safe.
    const status = repeatable ? 200 : 502
    const reasons = repeatable ? ['stale', '-'] : ['stale']
    return { status, whole: true, reasons, blamed: false }
  }
  const reason = how === 'stall' ? 'timeout_read' : how === 'reset' ? 'reset' : 'closed'
  const unsent = phase.raw === 'at once' && how === 'reset' && attempts === 2
  const goesOn = two && (repeatable || unsent)
  const status = goesOn ? 200 : how === 'stall' ? 504 : 502
  return { status, whole: true, reasons: goesOn ? [reason, '-'] : [reason], blamed: true }
}

test('wherever a peer stalls, resets or closes, client, log, health and connections have what the phase says', async () => {
  const outcomes = await Promise.all(cases.map(run))
  const records = new Map<string, Logged>()
  await front.idle()
  for (const record of await front.records()) records.set(record.request.split(' ')[1]!, record)
  const trouble: string[] = []
  const groups =
    await front.sidecar.json<
      Record<string, { peers: Record<string, { state: string; health: { fails: number } }> }>
    >('/status/http/upstreams/')
  for (const one of cases) {
    const { number, phase, how, asked, two } = one
    const { reply, connection, next, after } = outcomes[number]!
    const record = records.get(`/${number}/x`)
    const want = expected(one, record?.reasons.length ?? 0)
    const peer = Object.values(groups[`u${number}`]!.peers)[0]!
    const got = {
      status: reply === 'none' ? 0 : reply.status,
      whole: reply !== 'none' && reply.complete,
      reasons: record?.reasons ?? [],
      blamed: peer.health.fails > 0,
    }
    const what = `${asked.name}, ${two ? 'two peers' : 'one peer'}, ${how} ${phase.name}`
    try {
      assert.deepEqual(got, want)
      assert.equal(record?.status, want.status)
      if (!phase.raw) {
        assert.equal(after, 200)
        if (!two || !want.blamed) assert.notEqual(next, connection, 'the connection was used again')
      }
    } catch (error) {
      trouble.push(`${what}: ${error instanceof Error ? error.message : error}`)
    }
  }
  assert.deepEqual(trouble, [], trouble.slice(0, 20).join('\n'))
  // Nobody has been sent a request twice that may not be.
  const posts = script.requests.filter(({ method }) => method === 'POST').map(({ target }) => target)
  assert.equal(new Set(posts).size, posts.length)
  await front.settle(undefined, { seen: false })
})
