import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { seeded } from '../support/dice.ts'
import { type Sidecar, start } from '../support/sidecar.ts'

/* No client can make series: whatever it sends, there are those of the configuration's peers and of the closed lists. */

let sidecar: Sidecar
let peer: Server

/** Answers every request at once, with the status that its path asks for. */
function answering(socket: Socket): void {
  let unread = ''
  socket.on('error', () => {})
  socket.setEncoding('latin1').on('data', (text: string) => {
    unread += text
    for (let end = unread.indexOf('\r\n\r\n'); end >= 0; end = unread.indexOf('\r\n\r\n')) {
      const status = /^\S+ \S*status=(\d+)/.exec(unread)?.[1] ?? '200'
      unread = unread.slice(end + 4)
      socket.write(`HTTP/1.1 ${status} Scripted\r\nContent-Length: 0\r\n\r\n`)
    }
  })
}

before(async () => {
  peer = createServer(answering).listen(0, '127.0.0.1')
  await once(peer, 'listening')
  const { port } = peer.address() as AddressInfo
  sidecar = await start(`
    http {
      access_log off;
      keepalive_requests 100000;
      upstream shop { server 127.0.0.1:${port} max_fails=0; }
      server {
        listen 127.0.0.1:PORT;
        status_zone front;
        location / { proxy_pass http://shop; }
        location /odd {
          proxy_pass http://shop;
          proxy_intercept_errors on;
          error_page 403 =600 @page;
          error_page 404 =777 @page;
          error_page 409 =999 @page;
        }
        location @page { return 204; }
      }
    }`)
})

after(async () => {
  await sidecar?.stop()
  peer?.close()
})

/** Series and values of a page, those of the process itself (its memory, its collector) left out. */
async function scrape(path: string): Promise<Map<string, number>> {
  const page = await (await fetch(sidecar.admin + path)).text()
  const lines = page.split('\n').filter((line) => line !== '' && !/^(#|process_|nodejs_)/.test(line))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

/** Sends requests on kept connections, some ahead of their answers. @returns the statuses, with how many there were */
async function flood(requests: readonly string[], connections = 4, ahead = 12): Promise<Map<string, number>> {
  const statuses = new Map<string, number>()
  let next = 0
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(sidecar.port, '127.0.0.1')
      await once(socket, 'connect')
      let waiting = 0
      const send = () => {
        let text = ''
        for (; waiting < ahead && next < requests.length; waiting++) text += requests[next++]
        if (text !== '') socket.write(text, 'latin1')
        else if (waiting === 0) socket.end()
      }
      socket.setEncoding('latin1').on('data', (text: string) => {
        for (const [, status = ''] of text.matchAll(/HTTP\/1\.1 (\d+)/g)) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          waiting -= 1
        }
        if (waiting <= ahead / 2) send()
      })
      send()
      await once(socket, 'close')
    }),
  )
  return statuses
}

/** Those that have nothing in common. */
const different = process.env['TEST_LONG'] === '1' ? 100_000 : 20_000

test(`${different} requests that have nothing in common leave the series as they were`, async () => {
  const dice = seeded(7)
  const word = () => Math.floor(dice() * 2 ** 52).toString(36)
  const methods = [
    'GET',
    'POST',
    'PUT',
    'DELETE',
    'PATCH',
    'OPTIONS',
    'PROPFIND',
    'REPORT',
    'MKCOL',
    'M-SEARCH',
  ]
  const method = () =>
    dice() < 0.2 ? `FOO${Math.floor(dice() * 1e9)}` : methods[Math.floor(dice() * methods.length)]
  const request = () =>
    `${method()} /${word()}/${word()}?${word()}=${word()} HTTP/1.1\r\n` +
    `Host: ${word()}.example.com\r\nX-${word()}: ${word()}\r\nUser-Agent: ${word()}\r\nCookie: ${word()}=${word()}\r\n` +
    `X-Forwarded-For: 10.${Math.floor(dice() * 256)}.0.1\r\nTraceparent: 00-${word().padStart(32, '0')}-${word().padStart(16, '0')}-01\r\n\r\n`
  await flood([request()])
  const before = [await scrape('/metrics'), await scrape('/metrics/angie')] as const
  assert.deepEqual(await flood(Array.from({ length: different }, request)), new Map([['200', different]]))
  const later = [await scrape('/metrics'), await scrape('/metrics/angie')] as const
  for (const at of [0, 1] as const) assert.deepEqual([...later[at].keys()], [...before[at].keys()])
  const requests = 'evenkeel_upstream_requests_total{upstream="shop"}'
  assert.equal(later[0].get(requests)! - before[0].get(requests)!, different)
})

test('statuses that are none share one series, in which they are counted', async () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
  const odd = 'evenkeel_upstream_responses_total{upstream="shop",track="stable",code="xxx"}'
  const paths = ['/odd?status=403', '/odd?status=404', '/odd?status=409']
  const asked = Array.from({ length: 300 }, (_, i) => get(paths[i % 3]!))
  assert.deepEqual([...(await flood(asked))].sort(), [
    ['600', 100],
    ['777', 100],
    ['999', 100],
  ])
  const page = await scrape('/metrics')
  assert.equal(page.get(odd), 300)
  assert.deepEqual(
    [...page.keys()].filter((series) => /code="(?![1-5]\d\d")/.test(series)),
    [odd],
  )
})

test('a peer that answers with what is no status makes no series either', async () => {
  const before = await scrape('/metrics')
  const get = (status: number) => `GET /?status=${status} HTTP/1.1\r\nHost: x\r\n\r\n`
  const asked = Array.from({ length: 400 }, (_, i) => get(600 + i))
  assert.deepEqual(await flood(asked), new Map([['502', 400]]))
  const later = await scrape('/metrics')
  assert.deepEqual([...later.keys()], [...before.keys()])
  const refused = 'evenkeel_upstream_responses_total{upstream="shop",track="stable",code="502"}'
  assert.equal(later.get(refused)! - before.get(refused)!, 400)
  const reason = [...later].filter(([series]) => series.includes('reason="invalid_header"'))
  assert.deepEqual(
    reason.map(([, value]) => value),
    [400],
  )
})

test('methods that nobody knows go on as they are, or are refused, and make no series', async () => {
  const before = await scrape('/metrics')
  const dice = seeded(11)
  const methods = Array.from({ length: 2000 }, () => `FOO${Math.floor(dice() * 1e9)}`)
  const unfit = ['GE\tT', 'G(T', 'G\xe9T', '"GET"', '']
  const statuses = await flood(methods.map((method) => `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`))
  assert.deepEqual(statuses, new Map([['200', 2000]]))
  for (const method of unfit) {
    assert.deepEqual(await flood([`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`]), new Map([['400', 1]]), method)
  }
  const later = await scrape('/metrics')
  assert.deepEqual([...later.keys()], [...before.keys()])
  assert.ok(![...later.keys()].some((series) => series.includes('FOO')))
})
