import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UdpCourse } from '../../../sidecar/stream/udp-course.ts'

/**
 * A session's course: `>` is a datagram of the client, `<` one of the peer, `x` one of the client's that went nowhere,
 * each a millisecond after the one before.
 */
function course(story: string, requests: number, responses: number | undefined): UdpCourse {
  const made = new UdpCourse({ timeout: 100, requests, responses }, 0)
  for (const [i, step] of [...story].entries()) {
    if (step === '>') made.asked(i)
    else if (step === '<') made.answered(i)
    else made.dropped()
  }
  return made
}

/** What it has come to: complete, full, owing. */
function state(story: string, requests: number, responses: number | undefined): string {
  const { complete, full, owing } = course(story, requests, responses)
  return [complete && 'complete', full && 'full', owing && 'owing'].filter(Boolean).join(' ')
}

test('without a number of answers nothing is owed and nothing is ever complete', () => {
  for (const story of ['>', '><', '>><><<']) assert.equal(state(story, 0, undefined), '')
  assert.equal(state('>', 1, undefined), 'full')
  assert.equal(state('><', 1, undefined), 'full')
})

test('each datagram is to be answered so often', () => {
  assert.equal(state('>', 0, 2), 'owing')
  assert.equal(state('><', 0, 2), 'owing')
  assert.equal(state('><<', 0, 2), 'complete')
  assert.equal(state('>><<', 0, 2), 'owing')
  assert.equal(state('>><<<<', 0, 2), 'complete')
  assert.equal(state('><<<', 0, 2), 'complete')
})

test('where no answer is to come it is complete with its datagram', () => {
  assert.equal(state('>', 0, 0), 'complete')
  assert.equal(state('>', 2, 0), '')
  assert.equal(state('>>', 2, 0), 'complete full')
})

test('with a number of datagrams it is not complete before the last of them', () => {
  assert.equal(state('><', 2, 1), '')
  assert.equal(state('><>', 2, 1), 'full owing')
  assert.equal(state('><><', 2, 1), 'complete full')
})

test('a datagram that went nowhere is as if it had not been', () => {
  assert.equal(state('>x', 0, 1), 'complete')
  assert.equal(state('>>x', 0, 1), 'owing')
  assert.equal(state('>>x<', 0, 1), 'complete')
})

test('its time is counted from what passed last, or from what is owed', () => {
  assert.equal(course('>', 0, undefined).due, 100)
  assert.equal(course('>>>', 0, undefined).due, 102)
  assert.equal(course('><', 0, undefined).due, 101)
  assert.equal(course('>>>', 0, 1).due, 100, 'what came since is no answer')
  assert.equal(course('>><', 0, 1).due, 102, 'one of two has come')
  assert.equal(course('>><<', 0, 1).due, 103)
  assert.equal(course('><>', 0, 1).due, 102)
})

test('time in which nobody could do anything counts for nothing', () => {
  for (const responses of [undefined, 1]) {
    const made = course('>', 0, responses)
    made.forgive(50)
    assert.equal(made.due, 150)
  }
})

test('it is quiet when nothing has passed for a while and nothing is owed', () => {
  assert.equal(course('>', 0, undefined).quiet(50, 50), true)
  assert.equal(course('>', 0, undefined).quiet(49, 50), false)
  assert.equal(course('>', 0, 1).quiet(1000, 50), false)
  assert.equal(String(course('>><', 0, 2)), '1 of 4 answers came in time')
})
