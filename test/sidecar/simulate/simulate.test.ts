import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { OptionError } from '../../../sidecar/simulate/options.ts'
import { scenarios } from '../../../sidecar/simulate/scenarios.ts'
import { simulate } from '../../../sidecar/simulate/simulate.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-simulate-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const shop = file(
  'shop.conf',
  `http {
     upstream shop { least_time header factor=95; server a.example.com:8080; server 10.0.0.2; server unix:/tmp/c backup; }
     upstream weighed { server 10.0.0.1 weight=3; server 10.0.0.2; server 10.0.0.3 down; }
   }`,
)
const quiet = () => {}
const quick = [
  '-c',
  shop,
  '--upstream',
  'shop',
  '--duration',
  '6',
  '--methods',
  'round_robin,least_time header best',
]

/** What is printed for these words, the JSON read. */
function facts(...words: string[]) {
  // The shape is this program's own.
  return JSON.parse(simulate([...quick, '--json', ...words], quiet)) as {
    upstream: string
    instances: number
    load: number
    speeds: number[]
    central: { requests: number; p99: number }
    erlang: { chance: number }
    methods: {
      method: string
      configured: boolean
      fleet: boolean
      p99: number
      shares: number[]
      ratios: { p99: number }
    }[]
  }
}

test('the same seed gives the same table, byte for byte, and another seed another one', () => {
  for (const scenario of ['speeds', 'failing-peer', 'pauses']) {
    const print = (seed: string) => simulate([...quick, '--scenario', scenario, '--seed', seed], quiet)
    assert.equal(print('5'), print('5'))
    assert.notEqual(print('5'), print('6'))
  }
})

test('the table says what was simulated, and of whom', () => {
  const text = simulate([...quick, '--scenario', 'stall', '--load', '60'], quiet)
  assert.match(
    text,
    /^stall: one peer stands still for 5 s, from 3 to 3\.5 of 6 s\n2 peers of 2 workers, .* load 60 %/,
  )
  assert.match(text, /\nbest possible +[\d. ]+\n\* least_time header factor=95 +[\d. ]+\n {2}round_robin /)
  assert.match(
    text,
    /Erlang's C formula, for 4 equal workers that nothing befalls: [\d.]+ % of the requests wait/,
  )
})

test('the group is as the configuration has it: peers, weights, method and its arguments', () => {
  const { methods, speeds, upstream } = facts()
  assert.equal(upstream, 'shop')
  assert.deepEqual(
    methods.map(({ method, configured }) => [method, configured]),
    [
      ['least_time header factor=95', true],
      ['round_robin', false],
      ['least_time header best', false],
    ],
  )
  assert.deepEqual(speeds, [1, 1, 0])
  const weighed = facts('--upstream', 'weighed')
  assert.deepEqual(weighed.speeds, [3, 1, 0])
  const { shares } = weighed.methods[0]!
  assert.ok(Math.abs(shares[0]! - 0.75) < 0.01 && shares[2] === 0, `${shares}`)
})

test('options say what the configuration does not', () => {
  const usual = facts()
  assert.equal(usual.load, 0.7)
  assert.equal(usual.instances, 4)
  assert.equal(facts('--scenario', 'stall-many').instances, 20)
  assert.equal(facts('--scenario=stall-many', '--instances=2').instances, 2)
  assert.deepEqual(facts('--speeds', '2,5').speeds, [2, 5, 0])
  assert.ok(facts('--workers', '8').central.requests > 3 * usual.central.requests)
  assert.ok(facts('--service-ms', '40').central.p99 > 2 * usual.central.p99)
  assert.ok(facts('--network-ms', '20').central.p99 > usual.central.p99 + 39)
})

test('with a fleet whoever heeds what others see comes twice, without and with it', () => {
  const words = ['--fleet', '--scenario', 'failing-peer', '--instances', '8']
  const { methods } = facts(...words)
  assert.deepEqual(
    methods.map(({ method, fleet }) => [method, fleet]),
    [
      ['least_time header factor=95', false],
      ['least_time header factor=95', true],
      ['round_robin', false],
      ['least_time header best', false],
      ['least_time header best', true],
    ],
  )
  assert.notDeepEqual(methods[1], { ...methods[0], fleet: true })
  assert.deepEqual(facts(...words, '--fleet=200ms').methods, methods)
  assert.notDeepEqual(facts(...words, '--fleet=1s').methods, methods)
  const text = simulate([...quick, ...words], quiet)
  assert.match(text, /\n\* least_time header factor=95, fleet +[\d. ]+\n {2}round_robin /)
  assert.match(text, /"fleet" is with sidecars that tell one another what they see/)
  assert.equal(simulate([...quick, ...words], quiet), text)
  for (const wrong of ['5ms', '2h', 'often']) {
    assert.throws(() => facts(`--fleet=${wrong}`), {
      constructor: OptionError,
      message: `invalid value "${wrong}" of option "--fleet", it must be a time between 10ms and 60s`,
    })
  }
})

test('of several runs the medians are shown', () => {
  const single = ['1', '2', '3'].map((seed) => facts('--seed', seed).methods[1]!.ratios.p99)
  const median = single.toSorted((a, b) => a - b)[1]
  assert.equal(facts('--seed', '1', '--runs', '3').methods[1]!.ratios.p99, median)
})

test('every method of the program can be compared, and is unless told otherwise', () => {
  const lines: string[] = []
  const text = simulate(['-c', shop, '--upstream', 'weighed', '--duration', '3'], (line) => lines.push(line))
  for (const words of [
    '* round_robin',
    '  least_conn',
    '  random two',
    '  ip_hash',
    '  least_time last_byte best',
    '  feedback $upstream_http_x_drain_time inverse',
  ]) {
    assert.ok(text.includes(`\n${words} `), words)
  }
  const told = lines.map((line) => line.replace(/, .* s:/, ':'))
  assert.equal(told[0], `1 of ${lines.length}: central queue`)
  assert.equal(told.at(-1)!.split(':')[0], `${lines.length} of ${lines.length}`)
})

test('every scenario has a name for the list and runs', () => {
  const list = simulate(['--scenario', 'list'], quiet)
  for (const { name } of scenarios) {
    assert.ok(list.includes(`  ${name} `), name)
    assert.ok(
      facts('--scenario', name, '--duration', '3').methods.every(({ p99 }) => p99 > 0),
      name,
    )
  }
  assert.match(
    simulate(['--help'], quiet),
    /^Usage: evenkeel simulate[\s\S]*--service-ms MS[\s\S]*failing-peer/,
  )
})

const refusals: [string[], RegExp][] = [
  [['--lode', '7'], /^invalid option: "--lode"$/],
  [['toString'], /^invalid option: "toString"$/],
  [['--json=yes'], /^invalid option: "--json=yes"$/],
  [['--seed'], /^option "--seed" requires a value$/],
  [['--load', '0'], /^invalid value "0" of option "--load", it must be between 0.1 and 200$/],
  [['--load', '-5'], /^invalid value "-5"/],
  [['--instances', '2.5'], /^invalid value "2.5" of option "--instances", it must be a whole number$/],
  [['--speeds', '1,x'], /^invalid value "x" of option "--speeds"/],
  [['--report', 'load'], /^invalid value "load" of option "--report", it must be "time" or "count"$/],
  [['--scenario', 'flood'], /^unknown scenario "flood", it must be one of homogeneous, speeds, /],
  [['--upstream', 'toString'], /shop\.conf has no upstream "toString"$/],
  [
    ['--methods', 'least_tim'],
    /^invalid method "least_tim" in option "--methods": unknown directive "least_tim"$/,
  ],
  [['--methods', 'least_time header factor=100'], /"--methods": invalid parameter "factor=100"$/],
  [['--methods', 'keepalive 3'], /"--methods": "keepalive 3" is no balancing method$/],
  [['--workers', '1000', '--duration', '36000'], /and more than 20000000 are too many$/],
]
for (const [words, message] of refusals) {
  test(`${words.join(' ')} is refused`, () => {
    assert.throws(
      () => simulate([...quick, ...words], quiet),
      (error: unknown) => error instanceof OptionError && message.test(error.message),
    )
  })
}

test('which group is meant is asked where there are several, and there must be somebody in it', () => {
  assert.throws(
    () => simulate(['-c', shop], quiet),
    /has several upstreams: shop, weighed; name one with --upstream$/,
  )
  const none = file('none.yaml', 'http: {}\n')
  assert.throws(() => simulate(['-c', none], quiet), /none\.yaml has no upstream$/)
  const down = file('down.yaml', 'http: {upstreams: {a: {servers: [{address: 10.0.0.1, down: true}]}}}\n')
  assert.throws(() => simulate(['-c', down], quiet), /^OptionError|no server of the upstream/)
  const single = file('single.yaml', 'http: {upstreams: {a: {servers: [10.0.0.1]}}}\n')
  assert.match(
    simulate(['-c', single, '--duration', '3', '--methods', 'random'], quiet),
    /1 peer of 2 workers/,
  )
})
