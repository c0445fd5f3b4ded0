import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveProbe } from '../../../probes/live-probe.ts'
import { placed } from '../../../sidecar/build/place.ts'
import { prepare } from '../../../sidecar/build/running.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { probeDefaults } from '../../support/live-probe.ts'

/** The probes of a configuration with one group, `backend`. */
async function probesOf(servers: string, server = '127.0.0.1:8081'): Promise<readonly LiveProbe[]> {
  const text = `http {
    upstream backend { zone backend 1m; server ${server}; server 127.0.0.1:8082 backup; }
    map $upstream_status $good { 200 1; }
    ${servers}
  }`
  const loaded = loadText(text, 'evenkeel.conf', 'nginx')
  const prepared = await prepare(loaded, { prefix: '/etc/evenkeel', version: '1' }, undefined)
  return prepared.commit().probes
}

const location = (inside: string, server = '') =>
  `server { listen 8080; ${server} location / { proxy_pass http://backend; ${inside} } }`

/** What the first probe of a configuration asks. */
async function asked(servers: string) {
  const [probe] = await probesOf(servers)
  const call = probe!.call()
  return { call, question: probe!.question(call)! }
}

test('a probe has the defaults of the directive', async () => {
  const [probe] = await probesOf(location('upstream_probe health;'))
  const { upstream, kind, location: where, ...rest } = probe!
  assert.deepEqual([upstream.name, kind.name, where], ['backend', 'http', '/'])
  const { call: _call, question: _question, definition, retry, ...values } = rest
  assert.match(definition, /^[\w-]{8}$/)
  assert.deepEqual([...retry.on], ['error', 'timeout'])
  assert.deepEqual(values, { name: 'health', ...probeDefaults })
})

test('a probe of type grpc asks the group that grpc_pass names', async () => {
  const inside = 'grpc_pass grpc://Backend; upstream_probe health type=grpc service=a;'
  const [probe] = await probesOf(`server { listen 8080; location / { ${inside} } }`)
  assert.deepEqual(
    [probe!.upstream.name, probe!.kind.name, probe!.args],
    ['backend', 'grpc', { service: 'a' }],
  )
  assert.equal(probe!.call().proxyHost, 'Backend')
})

test('a probe over HTTP speaks the HTTP of its location, unless it says another one', async () => {
  const version = async (pass: string, more = '') => {
    const inside = `${pass}; upstream_probe health ${more};`
    const [probe] = await probesOf(`server { listen 8080; location / { ${inside} } }`)
    return [probe!.args['http_version'] ?? '1.1', probe!.definition] as const
  }
  const [one, plain] = await version('proxy_pass http://backend')
  const [two, newer] = await version('proxy_http_version 2; proxy_pass http://backend')
  assert.deepEqual([one, two], ['1.1', '2'])
  assert.notEqual(plain, newer)
  assert.equal((await version('grpc_pass grpc://backend'))[0], '2')
  assert.deepEqual(await version('proxy_pass http://backend', 'http_version=1.1'), [one, plain])
  assert.deepEqual(await version('proxy_pass http://backend', 'http_version=2'), [two, newer])
  assert.deepEqual(await version('proxy_http_version 2; proxy_pass http://backend', 'http_version=1.1'), [
    one,
    plain,
  ])
})

test('a probe knows the port that its scheme stands for', async () => {
  const port = async (scheme: string) => {
    const inside = `proxy_pass ${scheme}://backend; upstream_probe health type=tcp;`
    const [probe] = await probesOf(`server { listen 8080; location / { ${inside} } }`)
    return probe!.call().proxyPort
  }
  assert.deepEqual([await port('http'), await port('https')], ['80', '443'])
})

test("the probe's request has the location's fields, Host among them", async () => {
  const settings = `proxy_set_header Host shop.example; proxy_set_header X-From $upstream_probe;
    proxy_set_header X-Real-IP $remote_addr; proxy_connect_timeout 3s; proxy_buffer_size 4k;`
  const { question } = await asked(location(`${settings} upstream_probe health uri=/ok;`))
  assert.deepEqual(question, {
    method: 'GET',
    target: '/ok',
    headers: ['Host', 'shop.example', 'X-From', 'health'],
    connectTimeout: 3000,
    maxHead: 4096,
  })
})

test('without a client, $host is the first name of the server, or else what proxy_pass names', async () => {
  const host = async (value: string, names = '') => {
    const header = value === '' ? '' : `proxy_set_header Host ${value};`
    const { question } = await asked(location(`${header} upstream_probe health;`, names))
    return question.headers[1]
  }
  assert.equal(await host(''), 'backend')
  assert.equal(await host('$host', 'server_name shop.example www.example;'), 'shop.example')
  assert.equal(await host('$host'), 'backend')
  assert.equal(await host('$host', 'server_name _;'), 'backend')
  assert.equal(await host('$http_host', 'server_name shop.example;'), 'backend')
})

test('a probe is the same for all instances that ask the same, however often and whatever comes of it', async () => {
  const definition = async (probe: string, before = '', server = '') => {
    const [first] = await probesOf(location(`${before} upstream_probe health ${probe};`, server))
    return first!.definition
  }
  const plain = await definition('')
  const same = ['uri=/', 'interval=1s timeout=2s', 'fails=3 passes=2', 'essential persistent', 'mode=idle']
  for (const probe of [...same, 'type=http method=GET']) {
    assert.equal(await definition(probe), plain, probe)
  }
  const others = await Promise.all([
    ...['uri=/nope', 'port=81', 'method=HEAD', 'test=$good', 'max_body=1k', 'type=tcp'].map((probe) =>
      definition(probe),
    ),
    definition('', 'proxy_set_header Host a;'),
    definition('', 'proxy_set_header Host $pid;'),
    definition('', 'proxy_next_upstream http_503;'),
    definition('', '', 'server_name shop.example;'),
  ])
  assert.equal(new Set([plain, ...others]).size, others.length + 1)
  const [below] = await probesOf(
    `server { location / { proxy_pass http://backend/a; upstream_probe health; } }`,
  )
  assert.ok(![plain, ...others].includes(below!.definition))
})

test("the probe's uri is appended to the address of proxy_pass", async () => {
  const target = async (path: string, uri: string) => {
    const inside = `proxy_pass http://backend${path}; upstream_probe health ${uri};`
    return (await asked(`server { listen 8080; location / { ${inside} } }`)).question.target
  }
  assert.equal(await target('', ''), '/')
  assert.equal(await target('', 'uri=/health?full=1'), '/health?full=1')
  assert.equal(await target('/api', 'uri=/health'), '/api/health')
  assert.equal(await target('/api/', 'uri=/health'), '/api/health')
  assert.equal(await target('/api/', 'uri=health'), '/api/health')
  assert.equal(await target('/api', ''), '/api/')
  assert.equal(await target('', 'uri=health'), '/health')
})

test('a call without a client is there for variables to read', async () => {
  const { call } = await asked(location('upstream_probe health uri=/a?b=c method=HEAD;', 'server_name shop;'))
  const { method, target, uri, args, serverName, host, probe, upstream, proxyHost } = call
  assert.deepEqual(
    { method, target, uri, args, serverName, host, probe, upstream, proxyHost },
    {
      method: 'HEAD',
      target: '/a?b=c',
      uri: '/a',
      args: 'b=c',
      serverName: 'shop',
      host: 'shop',
      probe: 'health',
      upstream: 'backend',
      proxyHost: 'backend',
    },
  )
})

test('a probe judges by what its own location, or a level around it, takes for a failure', async () => {
  const probes = await probesOf(`proxy_next_upstream error http_503;
    server { listen 8080;
      location /a { proxy_pass http://backend; upstream_probe a; }
      location /b { proxy_pass http://backend; proxy_next_upstream http_500; upstream_probe b; }
    }`)
  assert.deepEqual(
    probes.map(({ name, retry }) => `${name}: ${[...retry.on]}`),
    ['a: error,http_503', 'b: http_500'],
  )
})

test('several probes of nested locations and servers are one group’s', async () => {
  const probes = await probesOf(`
    server { listen 8080; location / { proxy_pass http://backend; upstream_probe a; upstream_probe b type=tcp;
      location /x { proxy_pass http://BACKEND/y; upstream_probe c test=$good; } } }
    server { listen 8081; location / { proxy_pass http://backend; upstream_probe d type=agent port=9 send=hello.txt; } }`)
  assert.deepEqual(
    probes.map(({ name, kind, location: where }) => `${name} ${kind.name} ${where}`),
    ['a http /', 'b tcp /', 'c http /x', 'd agent /'].toSorted(),
  )
  assert.equal(new Set(probes.map(({ upstream }) => upstream)).size, 1)
  assert.deepEqual(probes.find(({ name }) => name === 'd')!.args, { send: '/etc/evenkeel/hello.txt' })
})

test('an unknown variable in a test is a mistake', async () => {
  await assert.rejects(probesOf(location('upstream_probe health test=$nothing;')), {
    message: 'unknown "nothing" variable',
  })
})

test('a name that leads to this host can be asked for its queue', async () => {
  const [probe] = await probesOf(location('upstream_probe queue type=backlog limit=4;'), 'localhost:8081')
  assert.equal(probe?.name, 'queue')
})

/** Whether each probe of a group is shared; peers are on another host unless a test says where. */
async function scopes(probes: string, group = '', server = '192.0.2.1:80', main = 'fleet redis://h;') {
  const text = `${main} http {
    upstream backend { zone backend 1m; server ${server}; ${group} }
    map $upstream_probe $asked { default 1; }
    server { listen 8080; location / { proxy_pass http://backend; ${probes} } }
  }`
  const loaded = loadText(text, 'evenkeel.conf', 'nginx')
  const prepared = await prepare(loaded, { prefix: '/', version: '1' }, undefined).catch((error: unknown) => {
    throw placed(error, loaded)
  })
  return prepared
    .commit()
    .probes.map(({ scope }) => scope)
    .join(' ')
}

test('a probe is shared where there is a fleet', async () => {
  const probes = 'upstream_probe a; upstream_probe b type=tcp; upstream_probe c type=agent port=9;'
  assert.equal(await scopes(probes), 'fleet fleet fleet')
  assert.equal(await scopes(probes, '', '192.0.2.1:80', ''), 'instance instance instance')
  assert.equal(await scopes(probes, 'fleet off;'), 'instance instance instance')
})

test('a probe says itself whether it is shared', async () => {
  assert.equal(
    await scopes('upstream_probe a scope=instance; upstream_probe b scope=fleet;'),
    'instance fleet',
  )
  assert.equal(await scopes('upstream_probe a scope=fleet;', '', '127.0.0.1:80'), 'fleet')
})

test('with a peer that only this host reaches, each instance asks for itself', async () => {
  for (const local of ['127.0.0.1:80', '[::1]:80', 'unix:/run/app.sock', 'localhost:80']) {
    assert.equal(await scopes('upstream_probe a;', '', local), 'instance', local)
    assert.equal(await scopes('upstream_probe a;', `server ${local} backup;`), 'instance', local)
  }
})

test('the queue of this host is its own', async () => {
  assert.equal(await scopes('upstream_probe a type=backlog limit=5;', '', '127.0.0.1:80'), 'instance')
})

test('where a method learns from probes, each instance asks for itself, and must not be told otherwise', async () => {
  for (const variable of ['$upstream_probe', '$asked']) {
    const group = `least_time header account=${variable};`
    assert.equal(await scopes('upstream_probe a;', group), 'instance', variable)
    await assert.rejects(scopes('upstream_probe a\nscope=fleet;', group), {
      message:
        'evenkeel.conf:4: "scope=fleet" parameter is incompatible with a method that learns from probes',
    })
  }
  assert.equal(await scopes('upstream_probe a;', 'least_time header account=$remote_addr;'), 'fleet')
})
