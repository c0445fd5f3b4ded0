import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nameServersOf, resolverLines, serversOf } from '../../../sidecar/build/name-servers.ts'
import { lookedUpBy } from '../../../sidecar/build/resolver-spec.ts'

test('name servers that are hosts are looked up, and others are what they are', async () => {
  const line = { addresses: ['127.0.0.1:5353', '[::1]', 'localhost:54'] }
  const hosts = await nameServersOf([line])
  assert.deepEqual([...hosts.keys()], ['localhost:54'])
  const servers = serversOf(line, new Map([['localhost:54', ['127.0.0.1', '::1']]]))
  assert.deepEqual(
    servers.map(({ host, port }) => `${host} ${port}`),
    ['127.0.0.1 5353', '::1 53', '127.0.0.1 54', '::1 54'],
  )
})

test('a name server that is not known is an error that says so', async () => {
  const line = { addresses: ['no.such.host.invalid'] }
  await assert.rejects(nameServersOf([line]), /^Error: host not found in resolver "no\.such\.host\.invalid"$/)
})

test('lines are found at every level where one may stand', () => {
  const line = (n: number) => ({ resolver: { addresses: [`10.0.0.${n}`] } })
  const lines = resolverLines({
    http: {
      ...line(1),
      servers: [
        {
          ...line(2),
          locations: { '/': { ...line(3), locations: { '/in': line(4) } }, '/off': { resolver: 'off' } },
        },
      ],
    },
    stream: { ...line(5), servers: [line(6)] },
  })
  assert.equal(lines.map(({ addresses }) => addresses[0]?.at(-1)).join(''), '152346')
})

test('the innermost line counts, and its time-out by itself', () => {
  const [outer, inner] = [{ addresses: ['10.0.0.1'], valid: '5s' }, { addresses: ['10.0.0.2'] }]
  const by = (...levels: Parameters<typeof lookedUpBy>[0][number][]) => {
    const spec = lookedUpBy(levels, new Map())
    return spec && `${spec.servers?.[0]?.host} ${spec.validMs} ${spec.timeoutMs}`
  }
  assert.equal(by({ resolver: outer }, {}), '10.0.0.1 5000 30000')
  assert.equal(
    by({ resolver: outer, resolver_timeout: '2s' }, { resolver: inner }),
    '10.0.0.2 undefined 2000',
  )
  assert.equal(by({ resolver: outer }, { resolver_timeout: '1s' }), '10.0.0.1 5000 1000')
  assert.equal(by({ resolver: outer }, { resolver: 'off' }), undefined)
  assert.equal(by({}, { resolver_timeout: '1s' }), undefined)
})
