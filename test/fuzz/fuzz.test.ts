import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Script } from './answers.ts'
import { Arena, type Outcome } from './arena.ts'
import { Campaign } from './campaign.ts'
import { type Lie, LyingProxy } from './lying-proxy.ts'
import { type Plan, planOf } from './plan.ts'
import { readAnswer, readRequests } from './strict.ts'

test('a few hundred generated cases go through the program without a finding', async () => {
  const said: string[] = []
  const campaign = new Campaign({
    minutes: 0.5,
    first: 20_000,
    // More than one batch.
    count: 320,
    threads: 1,
    say: (text) => said.push(text),
  })
  assert.ok(await campaign.run(), said.join('\n'))
  assert.match(said[0] ?? '', /seeds from 20000/)
  assert.match(said.at(-2) ?? '', / 320 cases,/)
})

test('a seed makes the same case each time', () => {
  for (const seed of [1, 2, 3, 99]) assert.deepEqual(planOf(seed), planOf(seed))
  assert.notDeepEqual(planOf(1), planOf(2))
})

const answer = 'HTTP/1.1 200 OK\r\nX-Tag: t\r\nContent-Length: 5\r\n\r\nhello'

function script(bytes = answer, end: Script['end'] = 'keep'): Script {
  return {
    when: 'whole',
    bytes: Buffer.from(bytes),
    cuts: [],
    pauseMs: 0,
    end,
    sound: end === 'keep',
    tunnel: false,
  }
}

/** One valid request and its answer. */
function plain(id: string, request: string, said = script(), sound = true): Plan {
  const [method, fields, body = ''] = request.split('|')
  const head = `${method} /q/${id}/0 HTTP/1.1\r\nHost: fuzz\r\n${fields}\r\n`
  return {
    seed: 0,
    id,
    variant: 0,
    messages: [{ bytes: Buffer.from(head + body), sound }],
    cuts: [],
    pauseMs: 0,
    inTurn: false,
    ending: 'wait',
    slowMs: 0,
    scripts: [[said]],
  }
}

const get = plain('aaaaaaaaaaaa', 'GET|X-F: 1\r\n')
const post = plain('bbbbbbbbbbbb', 'POST|Content-Length: 5\r\n|12345')
const cut = plain(
  'cccccccccccc',
  'GET|',
  script('HTTP/1.1 200 OK\r\nX-Tag: t\r\nContent-Length: 9\r\n\r\nhello', 'fin'),
)
const both = plain(
  'dddddddddddd',
  'POST|Content-Length: 5\r\nTransfer-Encoding: chunked\r\n|0\r\n\r\n',
  script(),
  false,
)
const later = plain(
  'eeeeeeeeeeee',
  'GET|',
  script(answer.replace('X-Tag: t', 'X-Tag: u').replace('hello', 'other')),
)

/** What is said of a proxy with a lie that carries these one after another. */
async function findings(lie: Lie, ...plans: readonly Plan[]): Promise<string> {
  const arena = await Arena.open((peers) => LyingProxy.open(peers, lie))
  const outcomes: Outcome[] = []
  try {
    for (const plan of plans) outcomes.push(await arena.run(plan))
    return [...outcomes.flatMap(({ faults }) => faults), ...(await arena.settle(outcomes))].join('\n')
  } finally {
    await arena.close()
  }
}

const edit = (from: string | RegExp, to: string) => (bytes: Buffer) =>
  Buffer.from(bytes.toString('latin1').replace(from, to), 'latin1')

test('an honest proxy is found to be one', async () => {
  assert.equal(await findings({}, get, post, both, later), '')
})

const lies: readonly (readonly [string, RegExp, Lie, ...Plan[]])[] = [
  ['changes the target', /nobody has sent/, { request: edit('/0 HTTP', '/1 HTTP') }, get],
  ['changes the method', /nobody has sent/, { request: edit('POST', 'PUT') }, post],
  ['changes a field', /got the fields/, { request: edit('X-F: 1', 'X-F: 2') }, get],
  ['adds a field', /got the fields/, { request: edit('X-F', 'X-Evil: 1\r\nX-F') }, get],
  ['changes a byte of a body', /a body that nobody has sent/, { request: edit('12345', '12346') }, post],
  [
    'sends a part of a body as the whole',
    /4 of 5 bytes/,
    { request: edit('5\r\n\r\n12345', '4\r\n\r\n1234') },
    post,
  ],
  [
    'makes two requests of one',
    /more before it had answered|nobody has sent/,
    { request: edit(/$/, 'GET /evil HTTP/1.1\r\nHost: x\r\n\r\n') },
    post,
  ],
  ['asks twice', /sent twice/, { asks: 2 }, get],
  ['repeats a POST', /POST was sent twice/, { asks: 2 }, post],
  ['passes on what is ambiguous', /a peer got a length and a transfer coding/, { believes: true }, both],
  ['changes a status', /no peer has said/, { answer: edit('200', '201') }, get],
  ['changes a byte of an answer', /no peer has said/, { answer: edit('hello', 'hullo') }, get],
  ['drops a field of an answer', /no peer has said/, { answer: edit('X-Tag: t\r\n', '') }, get],
  [
    'gives the answer of another request',
    /no peer has said/,
    { answer: (bytes, earlier) => earlier ?? bytes },
    get,
    later,
  ],
  [
    'answers twice',
    /more came after the last answer/,
    { answer: (bytes) => Buffer.concat([bytes, bytes]) },
    get,
  ],
  [
    'breaks the framing of an answer',
    /Content-Length|length of/i,
    { answer: edit('Length: 5', 'Length: +5') },
    get,
  ],
  [
    'sends a bare line feed',
    /a control|stray line break|value of/,
    { answer: edit('X-Tag: t\r\n', 'X-Tag: t\n') },
    get,
  ],
  [
    'makes a cut answer look whole',
    /looks whole/,
    { answer: edit('Length: 9', 'Length: 5'), smooths: true },
    cut,
  ],
  ['cuts a whole answer', /is cut, and the peer's was whole/, { answer: edit('hello', 'hel') }, get],
  [
    'refuses what is valid',
    /valid request/,
    { answer: () => Buffer.from('HTTP/1.1 400 X\r\nServer: evenkeel\r\nContent-Length: 0\r\n\r\n') },
    get,
  ],
  ['says nothing', /had to come/, { answer: () => Buffer.alloc(0) }, get],
  [
    'asks for a body nobody holds back',
    /a 100 that nobody expects/,
    { answer: edit(/^/, 'HTTP/1.1 100 Continue\r\n\r\n') },
    get,
  ],
]

for (const [what, found, lie, ...plans] of lies) {
  test(`a proxy that ${what} is found out`, async () => {
    assert.match(await findings(lie, ...plans), found)
  })
}

test('requests that can be read in two ways are none', () => {
  const broken = [
    'GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
    'GET / HTTP/1.1\r\nHost : x\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n',
    'GET / HTTP/1.1\nHost: x\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n',
    'GET  / HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;\na\r\na\r\n0\r\n\r\n',
  ]
  for (const text of broken) assert.equal(readRequests(Buffer.from(text, 'latin1')).rest, 'broken', text)
})

test('every beginning of a request is one that is cut', () => {
  const text =
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n0\r\nX: y\r\n\r\n'
  for (let length = 1; length < text.length; length++) {
    const { rest, why } = readRequests(Buffer.from(text.slice(0, length)))
    assert.equal(rest, 'cut', `${JSON.stringify(text.slice(0, length))} ${why}`)
  }
  const { requests, rest } = readRequests(Buffer.from(`${text}\r\n${text}`))
  assert.equal(rest, 'none')
  assert.deepEqual(
    requests.map(({ body }) => body.toString()),
    ['ab', 'ab'],
  )
})

test('an answer without a length is whole only when its connection ends in order', () => {
  const bytes = Buffer.from('HTTP/1.1 200 OK\r\n\r\nbody')
  const states = (['fin', 'reset', 'open'] as const).map(
    (ended) => readAnswer(bytes, 0, 'GET', false, ended).state,
  )
  assert.deepEqual(states, ['whole', 'cut', 'cut'])
})
