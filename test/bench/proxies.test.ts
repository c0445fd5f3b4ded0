import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'node:test'
import { monotonic } from '../../feedback/clock.ts'
import { ensure } from '../../scripts/ensure.ts'
import { GrpcClient } from '../support/grpc.ts'
import { measure } from './proxies.ts'
import { type Found, figures } from './proxies-figures.ts'
import { h2loadWords, timesOf } from './proxies-h2load.ts'
import { readOptions, usage } from './proxies-options.ts'
import { startPeer } from './proxies-peer.ts'
import { cpuMicros, family, residentBytes } from './proxies-process.ts'
import { readmeText, replaceBlock } from './proxies-readme.ts'
import { scenarioText } from './proxies-report.ts'
import { asks, type Scenario, scenarios } from './proxies-scenarios.ts'
import { subjects } from './proxies-subjects.ts'
import { Connections, type Turn } from './proxies-turn.ts'
import { median } from './tail-figures.ts'

await ensure(['h2load', 'openssl'])

const small = scenarios.find(({ name }) => name === 'small')!
const mebibyte = 1024 * 1024

function turn(cpuMicrosEach: number, extra: Partial<Turn> = {}): Turn {
  const requests = 1000
  return {
    requests,
    ms: 100,
    cpuMicros: cpuMicrosEach * requests,
    loadMicros: 50_000,
    p50: 1,
    p99: 2,
    residentBytes: 10 * mebibyte,
    ...extra,
  }
}

function found(name: string, costs: readonly number[], extra: Partial<Found> = {}): Found {
  const closed = costs.map((cost) => turn(cost))
  return { name, title: name, variant: false, warm: true, first: undefined, closed, paced: [], ...extra }
}

test('a ratio is to nginx in the same round, so a slow moment of the machine does not count', () => {
  const [evenkeel, nginx] = figures([found('evenkeel', [50, 100, 55]), found('nginx', [20, 40, 22])])
  assert.equal(evenkeel!.ratio, 2.5)
  assert.equal(evenkeel!.cpu, 55)
  assert.deepEqual(nginx!.cpuRange, [20, 40])
  assert.equal(nginx!.ratio, 1)
})

test('without nginx there are no ratios', () => {
  assert.equal(figures([found('evenkeel', [50])])[0]!.ratio, undefined)
})

test('times are those at the fixed rate where there is one, memory is the most of all turns', () => {
  const paced = [turn(50, { p50: 0.2, p99: 0.5, residentBytes: 12 * mebibyte })]
  const [one] = figures([found('evenkeel', [50], { paced })])
  assert.deepEqual([one!.p50, one!.p99, one!.residentBytes], [0.2, 0.5, 12 * mebibyte])
  assert.deepEqual([one!.perSecond, one!.pacedCpu], [10_000, 50])
})

test('the median of an even number of values lies between the two in the middle', () => {
  assert.equal(median([4, 1, 2, 3]), 2.5)
  assert.equal(median([3, 1, 2]), 2)
})

test('README has the costs with ratios, the noise of nginx, and a gap where a proxy was not measured', () => {
  const scenario = scenarios[1]!
  const text = readmeText({
    machine: 'a machine',
    rounds: 3,
    measured: [
      { scenario: small, found: figures([found('evenkeel', [50]), found('nginx', [20, 30, 25])]) },
      { scenario, found: figures([found('nginx', [100])]) },
    ],
    picks: { sizes: [10, 1000], rows: [{ method: 'round_robin', ns: [50, 2000] }] },
  })
  const lines = text.split('\n')
  assert.ok(lines.includes('a machine; medians of 3 rounds.'), text)
  assert.ok(lines.includes('| evenkeel | 50.0 (2.50) | – |'), text)
  assert.ok(lines.includes('| nginx | 25.0 | 100 |'), text)
  assert.ok(lines.includes('| nginx, least–most: the noise | 20.0–30.0 | 100–100 |'), text)
  assert.ok(lines.includes('| `round_robin` | 50 (1.0) | 2,000 (40.0) |'), text)
})

test('what was not warm yet is marked', () => {
  const measured = [{ scenario: small, found: figures([found('evenkeel', [50], { warm: false })]) }]
  assert.match(scenarioText(measured[0]!), /^evenkeel \* .*\n\* not warm yet/m)
  const text = readmeText({ machine: 'a', rounds: 1, measured, picks: { sizes: [], rows: [] } })
  assert.match(text, /^a; medians of 1 rounds; the machine was too busy to warm all of them up\.$/m)
})

test('the text of an earlier run is replaced, what stands around it stays', () => {
  const marks = ['<!-- npm run bench -- proxies --readme -->', '<!-- end -->'] as const
  const before = `above\n${marks[0]}\n\nold\n\n${marks[1]}\nbelow\n`
  const after = replaceBlock(before, 'new')
  assert.equal(after, `above\n${marks[0]}\n\nnew\n\n${marks[1]}\nbelow\n`)
  assert.equal(replaceBlock(after, 'new'), after)
  assert.throws(() => replaceBlock('nothing', 'new'), /README.md has no lines/)
})

test('options narrow the run, and what makes no sense is refused', () => {
  const all = readOptions([])
  assert.deepEqual([all.scenarios, all.subjects, all.picks], [scenarios, subjects, true])
  const some = readOptions(['--scenarios', 'small,conn1000', '--subjects', 'nginx,evenkeel', '--rounds', '2'])
  assert.deepEqual(
    some.scenarios.map(({ name }) => name),
    ['small', 'conn1000'],
  )
  assert.deepEqual(
    some.subjects.map(({ name }) => name),
    ['evenkeel', 'nginx'],
  )
  assert.deepEqual([some.rounds, some.picks], [2, false])
  assert.equal(readOptions(['--scenarios', 'picks']).picks, true)
  assert.throws(() => readOptions(['--scenarios', 'tiny']), /no scenario "tiny", there are small, /)
  assert.throws(() => readOptions(['--subjects', 'apache']), /no subject "apache"/)
  assert.throws(() => readOptions(['--rounds', '0']), /--rounds is "0"/)
  assert.throws(() => readOptions(['--readme', '--scenarios', 'small']), /all scenarios and all subjects/)
})

test('CPU time is counted finer than ticks, for all processes below one', () => {
  assert.ok(family(process.pid).includes(process.pid))
  assert.ok(family(process.ppid).includes(process.pid))
  const before = cpuMicros([process.pid])
  const usage = process.cpuUsage()
  const until = monotonic() + 2000
  // So much work on a core, however long that takes.
  let own = 0
  while (own < 30_000 && monotonic() < until) {
    const { user, system } = process.cpuUsage(usage)
    own = user + system
  }
  const counted = cpuMicros([process.pid]) - before
  assert.ok(Math.abs(counted - own) < own / 3, `${counted} µs, by the process itself ${own}`)
  assert.ok(residentBytes([process.pid]) > 20 * mebibyte)
})

for (const name of ['small', 'body100k', 'body10m', 'post', 'websocket'] as const) {
  test(`the peer answers "${name}" as the load expects it, in the loop and at a rate`, async () => {
    const { server, port } = await startPeer()
    const connections = new Connections()
    try {
      await connections.open(port, asks[name], 2)
      const loop = await connections.measure({ ms: 50, rate: undefined, pids: [process.pid] })
      assert.ok(loop.requests >= 2 && loop.p50 <= loop.p99 && loop.cpuMicros > 0)
      const paced = await connections.measure({ ms: 50, rate: 200, pids: [process.pid] })
      assert.equal(paced.requests, 10)
    } finally {
      connections.close()
      server.close()
    }
  })
}

test('the peer takes a body in chunks, and refuses one that lacks bytes', async () => {
  const { server, port } = await startPeer()
  const statusOf = async (length: number) => {
    const socket = connect(port, '127.0.0.1')
    const head = 'POST /post HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    socket.write(`${head}${length.toString(16)}\r\n${'p'.repeat(length)}\r\n0\r\n\r\n`)
    const [data] = await once(socket, 'data')
    socket.destroy()
    return String(data).slice(9, 12)
  }
  try {
    assert.deepEqual([await statusOf(10 * 1024), await statusOf(100)], ['200', '400'])
  } finally {
    server.close()
  }
})

test('the peer answers calls of gRPC as a server does, and refuses those that lack bytes', async () => {
  const { server, port } = await startPeer()
  try {
    using client = new GrpcClient(port)
    const text = 'c'.repeat(32)
    const all = await Promise.all(Array.from({ length: 20 }, () => client.unary(text)))
    for (const { code, messages } of all) assert.deepEqual([code, messages], [0, [text]])
    assert.equal((await client.unary('short')).code, 13)
  } finally {
    server.close()
  }
})

for (const [what, answer, message] of [
  ['another status', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\nhello\n', /begins "HTTP\/1.1 502/],
  ['another length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', /an answer of 5 bytes/],
  ['no length', 'HTTP/1.1 200 OK\r\n\r\nhello\n', /an answer of NaN bytes/],
  [
    'too many bytes',
    'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n!',
    /more bytes than the answer has/,
  ],
] as const) {
  test(`a proxy that answers with ${what} ends the measuring`, async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', () => socket.write(answer))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const connections = new Connections()
    try {
      // A listening TCP server has such an address.
      await connections.open((server.address() as AddressInfo).port, asks.small, 1)
      const measuring = connections.measure({ ms: 20, rate: undefined, pids: [] })
      await assert.rejects(measuring, message)
    } finally {
      connections.close()
      server.close()
    }
  })
}

test('a scenario is measured with evenkeel alone', async () => {
  const scenario: Scenario = { ...small, connections: 4, rate: 200, variants: false }
  const lines: string[] = []
  const options = { subjects, rounds: 2, turnMs: 100, warmMs: 100 }
  const evenkeel = subjects.filter(({ name }) => name === 'evenkeel')
  const anywhere = { proxy: undefined, rest: undefined }
  const [one, ...others] = await measure(scenario, { ...options, subjects: evenkeel }, anywhere, (text) =>
    lines.push(text),
  )
  assert.deepEqual(others, [])
  assert.ok(one && one.cpu > 0 && one.firstCpu! > 0 && one.p99 >= one.p50 && one.perSecond > 0)
  assert.ok(one.residentBytes > 20 * mebibyte)
  assert.equal(lines.filter((line) => /^small \d\/2: evenkeel [\d.]+$/.test(line)).length, 2)
})

for (const name of ['tls', 'tls-handshake', 'h2', 'h2c', 'grpc']) {
  test(`clients by "${name}" are measured with evenkeel alone`, async () => {
    const scenario = scenarios.find((one) => one.name === name)!
    const evenkeel = subjects.filter((one) => one.name === 'evenkeel')
    const anywhere = { proxy: undefined, rest: undefined }
    // Its first answers over HTTP/2 may take a while.
    const options = { subjects: evenkeel, rounds: 1, turnMs: 500, warmMs: 500 }
    const [one] = await measure(scenario, options, anywhere, () => {})
    assert.ok(one && one.cpu > 0 && one.p50 > 0 && one.p99 >= one.p50 && one.perSecond > 0)
    assert.match(usage, new RegExp(`scenarios: .*\\b${name},`))
  })
}

test('h2load is told how clients speak, and how often each connection sends', () => {
  const words = (name: string, rate: number | undefined) => {
    const { front, connections } = scenarios.find((one) => one.name === name)!
    return h2loadWords({ port: 1, front: front!, connections }, rate, 'BODY').join(' ')
  }
  const cipher = '--tls13-ciphers=TLS_AES_128_GCM_SHA256'
  assert.equal(words('tls', undefined), `-c 16 -m 1 --h1 ${cipher} https://127.0.0.1:1/small`)
  assert.equal(words('h2', 1000), `-c 4 -m 16 ${cipher} --rps 250 https://127.0.0.1:1/small`)
  assert.equal(words('h2c', undefined), '-c 4 -m 16 http://127.0.0.1:1/small')
  const call = '-d BODY -H content-type: application/grpc -H te: trailers'
  assert.equal(words('grpc', undefined), `-c 4 -m 16 ${call} http://127.0.0.1:1/bench.Talk/say`)
})

test('of what h2load saw only the answers of the turn count, and all have to be 2xx', () => {
  const log = '1000\t200\t500\n1000\t200\t3000\n3000\t204\t2000\n5900\t200\t200\n59'
  assert.deepEqual([...timesOf(log, 2000, 6000)], [2, 3])
  assert.throws(() => timesOf(log, 7000, 8000), /no answer came/)
  assert.throws(() => timesOf('1000\t502\t100\n', 0, 6000), /status 502/)
  assert.throws(() => timesOf('1000\t-1\t100\n', 0, 6000), /status -1/)
})
