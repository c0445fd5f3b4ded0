import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Call } from '../../../feedback/call.ts'
import { Variables } from '../../../feedback/variables.ts'
import type { Route, Step } from '../../../sidecar/proxy/route.ts'
import {
  type Condition,
  compileScript,
  quotedText,
  rewriting,
  type ScriptStep,
} from '../../../sidecar/proxy/script.ts'
import { defaultSettings } from '../../../sidecar/proxy/settings.ts'
import { callFor, matcher } from '../../support/call.ts'

const variables = new Variables()
const compile = (text: string) => variables.compile(text)

const set = (name: string, value: string): ScriptStep => ({
  kind: 'set',
  assign: variables.declareSet(name),
  value: quotedText(value, compile),
})
const rewrite = (regex: string, replacement: string, flag?: 'last' | 'break' | 'redirect' | 'permanent') =>
  rewriting(matcher(regex, variables), replacement, flag, compile)
const give = (status: number, text?: string): ScriptStep => ({
  kind: 'return',
  status,
  text: text === undefined ? undefined : compile(text),
})
const stop: ScriptStep = { kind: 'break' }
const when = (condition: Condition, steps: ScriptStep[], route?: Route): ScriptStep => ({
  kind: 'if',
  condition,
  steps,
  route,
})
const isSet = (subject: string): Condition => ({ kind: 'set', subject: compile(subject) })
const equals = (subject: string, value: string, negative = false): Condition => ({
  kind: 'equal',
  subject: compile(subject),
  value: quotedText(value, compile),
  negative,
})
const fits = (subject: string, regex: string, negative = false): Condition => ({
  kind: 'match',
  subject: compile(subject),
  matches: matcher(regex, variables),
  negative,
})
const routeNamed = (location: string): Route => ({
  location,
  settings: defaultSettings,
  content: { kind: 'none' },
  script: undefined,
})

/** Runs steps and tells the outcome with the URI that is left: `relocate /x?a=1`. */
function run(target: string, ...steps: ScriptStep[]): string {
  const call = callFor(target)
  return `${outcome(runOn(call, steps))} ${call.uri}${call.args === '' ? '' : `?${call.args}`}`
}

function runOn(call: Call, steps: readonly ScriptStep[]): Step {
  const script = compileScript(steps)
  assert.ok(script)
  return script(call)
}

function outcome(step: Step): string {
  if (step.kind === 'return') return `${step.status}${step.text === undefined ? '' : ` ${step.text}`}`
  return step.kind === 'route' ? step.route.location : step.kind
}

test('a level without steps has no script', () => {
  assert.equal(compileScript([]), undefined)
})

test('rewrite changes path and keeps arguments behind its own', () => {
  assert.equal(run('/a/b?x=1', rewrite('^/a/(.*)$', '/c/$1', 'last')), 'relocate /c/b?x=1')
  assert.equal(run('/a/b?x=1', rewrite('^/a/(.*)$', '/c?p=$1', 'last')), 'relocate /c?p=b&x=1')
  assert.equal(run('/a/b', rewrite('^/a/(.*)$', '/c?p=$1', 'last')), 'relocate /c?p=b')
  assert.equal(run('/x?y', rewrite('^/a/', '/c', 'last')), 'content /x?y')
})

test('a question mark at the end drops the arguments', () => {
  assert.equal(run('/a?x=1', rewrite('^/a', '/c?', 'last')), 'relocate /c')
  assert.equal(run('/a?x=1', rewrite('^/a', '/c?y=2?', 'last')), 'relocate /c?y=2')
})

test('without a flag the next steps go on with the new path, and the location is looked for afterwards', () => {
  assert.equal(run('/a', rewrite('^/a', '/b'), rewrite('^/b', '/c')), 'relocate /c')
})

test('last ends the script, break does so and stays in the location', () => {
  assert.equal(run('/a', rewrite('^/a', '/b', 'last'), rewrite('^/b', '/c')), 'relocate /b')
  const call = callFor('/a')
  assert.equal(
    outcome(runOn(call, [rewrite('^/a', '/b', 'break'), rewrite('^/b', '/c'), give(403)])),
    'content',
  )
  assert.equal(call.uri, '/b')
  assert.equal(call.pathKept, false)
  assert.equal(call.rewritten, true)
})

test('break alone ends the script, and a path rewritten before it stays in the location', () => {
  assert.equal(run('/a', stop, give(403)), 'content /a')
  const call = callFor('/a')
  assert.equal(outcome(runOn(call, [rewrite('^/a', '/b'), stop, give(403)])), 'content')
  assert.equal(call.pathKept, false)
})

test('redirect and permanent answer with the new URL and the arguments', () => {
  assert.equal(run('/a/b?x=1', rewrite('^/a/(.*)$', '/c/$1', 'redirect')), '302 /c/b?x=1 /a/b?x=1')
  assert.equal(run('/a/b?x=1', rewrite('^/a/(.*)$', '/c/$1?y=2', 'permanent')), '301 /c/b?y=2&x=1 /a/b?x=1')
  assert.equal(run('/a/b?x=1', rewrite('^/a/(.*)$', '/c/$1?', 'permanent')), '301 /c/b /a/b?x=1')
})

test('a replacement with a scheme is a redirect whatever the flag', () => {
  assert.equal(run('/a', rewrite('^/a', 'http://h/b', 'last')), '302 http://h/b /a')
  assert.equal(run('/a', rewrite('^/a', 'https://h/b')), '302 https://h/b /a')
  assert.equal(run('/a', rewrite('^/a', '$scheme://h/b')), '302 http://h/b /a')
  assert.equal(run('/a', rewrite('^/a', 'http://h/b', 'permanent')), '301 http://h/b /a')
})

test('captures are escaped again in arguments and redirects, where the client had escapes', () => {
  assert.equal(run('/a/b%26c', rewrite('^/a/(.*)$', '/c?p=$1', 'last')), 'relocate /c?p=b%26c')
  assert.equal(run('/a/b&c', rewrite('^/a/(.*)$', '/c?p=$1', 'last')), 'relocate /c?p=b&c')
  assert.equal(run('/a/b%20c', rewrite('^/a/(.*)$', '/c/$1', 'last')), 'relocate /c/b c')
  assert.equal(run('/a/b%20c%0D', rewrite('^/a/(.*)$', '/c/$1', 'redirect')), '302 /c/b%20c%0D /a/b c\r')
})

test('line breaks that a variable brings cannot get into arguments', () => {
  assert.equal(
    run('/a%0D%0Ab', rewrite('^/a', '/c?p=$uri', 'last')).replace('relocate ', ''),
    '/c?p=/a%0D%0Ab',
  )
})

test('set keeps captures of the last match, escaped as the client wrote them', () => {
  const value = variables.declareSet('part')
  assert.ok(value)
  const call = callFor('/a/b%20c')
  runOn(call, [when(fits('$uri', '^/a/(.*)$'), [set('part', '<$1>')])])
  assert.equal(variables.compile('$part')(call), '<b%20c>')
})

test('an expression that does not match leaves no captures behind', () => {
  const call = callFor('/a/b')
  runOn(call, [
    when(fits('$uri', '^/(.)/'), [set('one', '$1')]),
    when(fits('$uri', '^/(x)/'), []),
    set('two', '[$1]'),
  ])
  assert.equal(variables.compile('$one$two')(call), 'a[]')
})

test('named captures of a rewrite are variables', () => {
  const step = rewrite('^/(?<first>\\w+)/(?<second>\\w+)$', '/x', 'last')
  const call = callFor('/a/b')
  runOn(call, [step])
  assert.equal(variables.compile('$second-$first')(call), 'b-a')
})

test('return ends the script with a status and a text', () => {
  assert.equal(run('/a', give(204)), '204 /a')
  assert.equal(run('/a', give(200, 'hello $uri'), give(500)), '200 hello /a /a')
})

test('a path that a rewrite leaves empty is an error', () => {
  assert.equal(run('/a', rewrite('^/(b?)a$', '$1', 'last')), '500 /a')
})

test('a condition holds for every text but an empty one and 0', () => {
  for (const [target, holds] of [
    ['/?q=1', true],
    ['/?q=00', true],
    ['/?q=0', false],
    ['/?q=', false],
    ['/', false],
  ] as const) {
    assert.equal(run(target, when(isSet('$arg_q'), [give(403)])).startsWith('403'), holds, target)
  }
})

test('comparisons', () => {
  const yes = [
    equals('$arg_q', 'Ab'),
    equals('$arg_q', 'x', true),
    fits('$arg_q', 'b$'),
    fits('$arg_q', '*^aB'),
    fits('$arg_q', '^b', true),
    equals('$arg_q', '$arg_p'),
  ]
  const no = [
    equals('$arg_q', 'ab'),
    equals('$arg_q', 'Ab', true),
    fits('$arg_q', '^b'),
    fits('$arg_q', '*b', true),
  ]
  for (const condition of yes)
    assert.equal(run('/?q=Ab&p=Ab', when(condition, [give(403)])), '403 /?q=Ab&p=Ab')
  for (const condition of no)
    assert.equal(run('/?q=Ab&p=Ab', when(condition, [give(403)])), 'content /?q=Ab&p=Ab')
})

test('the last if that holds is in charge, and steps after it go on', () => {
  const first = when(isSet('$arg_a'), [], routeNamed('first'))
  const second = when(isSet('$arg_b'), [], routeNamed('second'))
  assert.equal(run('/?a=1', first, second), 'first /?a=1')
  assert.equal(run('/?a=1&b=1', first, second), 'second /?a=1&b=1')
  assert.equal(run('/', first, second), 'content /')
  assert.equal(run('/?a=1', first, rewrite('^/', '/x', 'last')), 'relocate /x?a=1')
})

test('a return behind an if has the settings of that if', () => {
  const step = runOn(callFor('/?a=1'), [when(isSet('$arg_a'), [give(403)], routeNamed('inside'))])
  assert.equal(step.kind === 'return' && step.route?.location, 'inside')
})

test('a break inside of an if ends the whole script', () => {
  assert.equal(run('/?a=1', when(isSet('$arg_a'), [stop], routeNamed('inside')), give(403)), 'inside /?a=1')
})
