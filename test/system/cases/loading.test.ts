// Groups of nginx's and Angie's guides, changed in their addresses and names alone, and what `-t` says of them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seed, tested } from '../../support/seed.ts'

/** Nobody has to be there: that is only asked of those who are to answer. */
const at = {
  'backend1.example.com': '127.0.0.1:8001',
  'backend2.example.com': '127.0.0.2:8001',
  'backend3.example.com': '127.0.0.3:8001',
  'backup1.example.com': '127.0.0.51:8001',
  'backend:': '127.0.0.1:',
}

/** A group of the guide, by its example's name. */
async function group(name: string): Promise<string> {
  return rename((await seed(name, at)).trim(), name.replace('-', '_'))
}

/** Several groups stand in one file, so each needs names of its own. */
function rename(block: string, name: string): string {
  return block.replace(/upstream \w+/, `upstream ${name}`).replace(/zone \w+/, `zone ${name}`)
}

/** The same group with a line more at its end. */
function withLine(block: string, line: string, name: string): string {
  return rename(block, name).replace(/\n}$/, `\n    ${line}\n}`)
}

/** Each group and, below, a place that passes everything to it. */
function inHttp(...blocks: readonly string[]): string {
  const places = names(blocks).map((name) => `location /${name} { proxy_pass http://${name}; }`)
  return `http {\n${blocks.join('\n')}\nserver { listen 127.0.0.1:8000; ${places.join(' ')} }\n}\n`
}

function inStream(...blocks: readonly string[]): string {
  const servers = names(blocks).map(
    (name, i) => `server { listen 127.0.0.1:${8100 + i}; proxy_pass ${name}; }`,
  )
  return `stream {\n${blocks.join('\n')}\n${servers.join('\n')}\n}\n`
}

function names(blocks: readonly string[]): string[] {
  return blocks.map((block) => /upstream (\w+)/.exec(block)![1]!)
}

/** Says of a text that it loads, with these words: level, text and line. */
async function loads(text: string, ...words: readonly string[]): Promise<void> {
  const { code, said } = await tested(text)
  const told = [...said.matchAll(/^evenkeel: \[(\w+)\] (.*) in \/evenkeel\.conf:(\d+)$/gm)]
  assert.deepEqual(
    told.map(([, level, what, line]) => `${level} ${what} ${line}`),
    words,
    `${said}\n${text}`,
  )
  assert.match(said, /syntax is ok\n.*test is successful\n$/)
  assert.equal(code, 0)
}

test('the groups of the guide load without a word', async () => {
  const all = ['weighted', 'hash', 'ip-hash', 'random-two', 'least-time', 'feedback', 'backup', 'zone']
  const slow = `upstream slow {\n${(await seed('slow-start', at)).trim()}\n}`
  await loads(inHttp(...(await Promise.all(all.map(group))), slow))
  const checks = (await seed('active-checks', at)).replace('listen 80;', 'listen 127.0.0.1:8000;')
  await loads(`http {\n${checks}\n}\n`)
})

test('the same groups load in stream, with its modes, without the method that it has not', async () => {
  const same = await Promise.all(['weighted', 'random-two', 'backup', 'zone'].map(group))
  const hash = (await group('hash')).replace('$request_uri', '$remote_addr')
  const timed = await group('least-time')
  const modes = ['connect', 'first_byte', 'last_byte'].map((mode) =>
    rename(timed, mode).replace('least_time header', `least_time ${mode}`),
  )
  await loads(inStream(...same, hash, ...modes))
  const header = await tested(inStream(timed))
  assert.match(header.said, /\[emerg\] invalid parameter "header" in \/evenkeel\.conf:4\n/)
  const byAddress = await tested(inStream(await group('ip-hash')))
  assert.match(byAddress.said, /\[emerg\] "ip_hash" directive is not allowed here in \/evenkeel\.conf:4\n/)
})

test('what binds, queues and switches loads with groups of the guide', async () => {
  const backup = await group('backup')
  const switches = ['permanent', 'permanent=2m'].map((words, i) =>
    withLine(backup, `backup_switch ${words};`, `switch${i}`),
  )
  const zone = await group('zone')
  const waiting = ['queue 10;', 'queue 10 timeout=5s;'].map((line, i) => withLine(zone, line, `queue${i}`))
  const bound = [
    'sticky cookie srv_id expires=1h domain=.example.com path=/;',
    'sticky route $cookie_route $arg_route;',
    'sticky learn zone=sessions:1m create=$upstream_cookie_id lookup=$cookie_id;',
  ].map((line, i) => withLine(zone.replace('2:8001;', '2:8001 drain;'), line, `bound${i}`))
  const session = withLine(zone, 'sticky route $remote_addr;', 'bound')
  await loads(
    inHttp(...switches, ...waiting, ...bound) +
      inStream(...switches.map((one) => one.replace(/ zone.*/, '')), session),
  )
})

test('a method warns where it stands after what has to stand after it, and only there', async () => {
  const random = await group('random-two')
  const method = 'random two;'
  const lines = ['sticky cookie srv_id;', 'queue 10;', 'keepalive 8;']
  const wrong = lines.map((line, i) => withLine(random, '', `a${i}`).replace(method, `${line} ${method}`))
  const right = lines.map((line, i) => withLine(random, line, `b${i}`))
  const redefined = (line: number) => `warn load balancing method redefined ${line}`
  const height = wrong[0]!.split('\n').length
  const places = lines.map((_, i) => redefined(i * height + 4))
  await loads(inHttp(...wrong, ...right), ...places)
  const session = withLine(random, '', 'c').replace(method, `sticky route $remote_addr; ${method}`)
  await loads(inStream(session), redefined(4))
})

test('an experiment with both layers loads, with a word on what has no effect', async () => {
  const noEffect = 'directive has no effect here'
  await loads(await seed('lab-layers', at), `notice "events" ${noEffect} 3`, `notice "root" ${noEffect} 7`)
})
