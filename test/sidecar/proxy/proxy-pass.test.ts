import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Call } from '../../../feedback/call.ts'
import { Variables } from '../../../feedback/variables.ts'
import { proxyAddress } from '../../../sidecar/config/address.ts'
import { fixedPass, variablePass } from '../../../sidecar/proxy/proxy-pass.ts'
import type { ProxyPass } from '../../../sidecar/proxy/route.ts'
import { callFor } from '../../support/call.ts'

/** What is sent to the peer for a request, by a location and its proxy_pass. */
function sent(location: string, url: string, target: string, fields: Partial<Call> = {}): string {
  return fixedPass(proxyAddress(url), undefined, location).requestTarget(callFor(target, fields))
}

test('without a path the target goes out byte for byte', () => {
  assert.equal(sent('/k/', 'http://h', '/k/a%2Fb/../c'), '/k/a%2Fb/../c')
  assert.equal(sent('/', 'http://h', '/a//b?x=%41&y'), '/a//b?x=%41&y')
  assert.equal(sent('/', 'http://h', 'http://other?token=1'), '/?token=1')
})

test('a path takes the place of the part that chose the location', () => {
  assert.equal(sent('/sub/', 'http://h/new', '/sub/a%20b/c?x=%41'), '/newa%20b/c?x=%41')
  assert.equal(sent('/p', 'http://h/x/', '/p/a'), '/x//a')
  assert.equal(sent('/p', 'http://h/x/', '/pq'), '/x/q')
  assert.equal(sent('/sub2/', 'http://h/', '/sub2//a/../b'), '/b')
  assert.equal(sent('/least/', 'http://h/', '/least/'), '/')
})

test('the path that is sent is the normalised one, so it cannot lead where another location is', () => {
  assert.equal(sent('/hi/', 'http://h/base/', '/hi/a%2Fb%5Cc'), '/base/a/b%5Cc')
  assert.equal(sent('/hi/', 'http://h/base/', '/hi/x/%2e%2e/y'), '/base/y')
  assert.equal(sent('/hi/', 'http://h/base/', '/hi/.../x'), '/base/.../x')
})

test('what the client sent without escapes is not escaped', () => {
  assert.equal(sent('/a/', 'http://h/b/', '/a/{x}|"y"'), '/b/{x}|"y"')
  assert.equal(sent('/a/', 'http://h/b/', '/a/%7Bx}'), '/b/%7Bx%7D')
})

test('a rewritten path goes out escaped, with its arguments', () => {
  const rewritten = { uri: '/new path', args: 'y=2', rewritten: true }
  assert.equal(sent('/', 'http://h', '/a?x=1', rewritten), '/new%20path?y=2')
  assert.equal(sent('/new', 'http://h/z', '/a', { uri: '/new/b c', rewritten: true }), '/z/b%20c')
})

test('after rewrite with break the whole path is sent, and that of proxy_pass is not', () => {
  const broken = { uri: '/x/y', args: 'q', rewritten: true, pathKept: false }
  assert.equal(sent('/name/', 'http://h/base/', '/name/y?q', broken), '/x/y?q')
})

test('a path without its slash, and arguments that a variable broke, do not spoil the request line', () => {
  assert.equal(sent('/', 'http://h', '/a', { uri: 'a', rewritten: true }), '/a')
  assert.equal(sent('/a', 'http://h/b', '/a', { args: 'x\r\nHost: y' }), '/b?x%0D%0AHost:%20y')
  assert.equal(sent('/a', 'http://h?k=1', '/a'), '/?k=1')
})

const host = (url: string) => {
  const { host, port } = fixedPass(proxyAddress(url), undefined, '/').target(callFor('/'))
  return `${host} ${port}`
}

test('$proxy_host is as written but for the default port', () => {
  assert.equal(host('http://backend'), 'backend 80')
  assert.equal(host('http://h:80/x'), 'h 80')
  assert.equal(host('http://h:8081/x'), 'h:8081 8081')
  assert.equal(host('http://[::1]:8081'), '[::1]:8081 8081')
  assert.equal(host('http://unix:/run/app.sock:/x'), 'localhost ')
})

test('a Unix socket may have a path behind a second colon', () => {
  assert.equal(sent('/a/', 'http://unix:/run/app.sock:/b/', '/a/c'), '/b/c')
  assert.equal(sent('/a/', 'http://unix:/run/app.sock', '/a/c%2F'), '/a/c%2F')
})

function variable(text: string, variables = new Variables()): { pass: ProxyPass; asked: string[] } {
  const asked: string[] = []
  const parse = (url: string) => {
    try {
      return proxyAddress(url)
    } catch (error) {
      return String(error)
    }
  }
  const pass = variablePass(variables.compile(text), parse, ({ authority }) => {
    asked.push(authority)
    return { status: 502, text: `no resolver defined to resolve ${authority}` }
  })
  return { pass, asked }
}

test('with variables and a path the text is sent as it comes out', () => {
  assert.equal(
    variable('http://h$request_uri').pass.requestTarget(callFor('/a%2Fb/../c?x=1')),
    '/a%2Fb/../c?x=1',
  )
  assert.equal(variable('http://h/fix?u=$arg_u').pass.requestTarget(callFor('/a?u=1&v=2')), '/fix?u=1')
  assert.equal(variable('http://h$uri').pass.requestTarget(callFor('/a%0D%0Ab%20c')), '/a%0D%0Ab%20c')
  assert.equal(variable('http://h?u=$arg_u').pass.requestTarget(callFor('/a?u=1')), '/?u=1')
})

test('with variables and no path the target goes out as without variables', () => {
  const { pass } = variable('http://$arg_g')
  assert.equal(pass.requestTarget(callFor('/a%2Fb?g=h')), '/a%2Fb?g=h')
  assert.equal(pass.requestTarget(callFor('/a?g=h', { uri: '/b c', rewritten: true })), '/b%20c?g=h')
})

test('a group is looked for at each request, and what keeps it from being found is told', () => {
  const { pass, asked } = variable('http://$arg_g')
  const target = pass.target(callFor('/?g=blue'))
  assert.deepEqual(asked, ['blue'])
  assert.deepEqual(target.failure, {
    status: 502,
    text: 'no resolver defined to resolve blue',
  })
  assert.equal(target.host, 'blue')
})

test('a text that is no URL is a failure of the configuration', () => {
  assert.deepEqual(variable('$arg_g').pass.target(callFor('/?g=blue')).failure, {
    status: 500,
    text: 'Error: invalid URL prefix in "blue", it is "http://" or "https://"',
  })
})
