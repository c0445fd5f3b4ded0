import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Dissent } from '../../probes/dissent.ts'
import type { ProbeRecord } from '../../probes/record.ts'

const interval = 1000

/** Results in turn: who has asked, and whether it passed; one every half interval. */
class Story {
  readonly dissent = new Dissent()
  #record: ProbeRecord = {
    seq: 0,
    fails: 0,
    streak: 0,
    before: 0,
    at: 0,
    tookMs: 1,
    by: '',
    job: '',
    detail: '',
    orders: undefined,
  }

  hear(by: 'me' | 'other', passed: boolean, afterMs = 500): boolean {
    const { streak, before, at } = this.#record
    const step = passed ? 1 : -1
    const turns = streak * step < 0
    this.#record = {
      ...this.#record,
      streak: turns ? step : streak + step,
      before: turns ? streak : before,
      at: at + afterMs,
    }
    return this.dissent.hear(this.#record, by === 'me', interval, this.now)
  }

  get now(): number {
    return this.#record.at
  }

  get pause(): number {
    return this.dissent.pauseLeft(this.now) / interval
  }
}

test('a failure that another contradicts is a reason to pause, twice as long each time', () => {
  const story = new Story()
  story.hear('other', true)
  story.hear('me', false)
  assert.equal(story.pause, 0)
  assert.equal(story.hear('other', true), true)
  const pauses = [story.pause]
  for (let i = 0; i < 8; i++) {
    story.hear('me', false)
    assert.equal(story.hear('other', true), false, 'it is said once')
    pauses.push(story.pause)
  }
  assert.deepEqual(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600])
  story.dissent.pause(100_000, story.now)
  assert.equal(story.pause, 1000, 'never less than ten intervals')
})

test('several failures of its own alone are contradicted as one is', () => {
  const story = new Story()
  for (let i = 0; i < 3; i++) story.hear('me', false)
  assert.equal(story.hear('other', true), true)
})

test('a peer that others have seen fail, too, has come back', () => {
  for (const order of [
    ['me', 'other'],
    ['other', 'me'],
    ['me', 'other', 'me'],
    ['other', 'me', 'me'],
  ] as const) {
    const story = new Story()
    for (const by of order) story.hear(by, false)
    assert.equal(story.hear('other', true), false, order.join())
    assert.equal(story.pause, 0)
  }
})

test('so has one that passes only after a while, and one that passes from here', () => {
  const late = new Story()
  late.hear('me', false)
  assert.equal(late.hear('other', true, 2100), false)
  const own = new Story()
  own.hear('me', false)
  assert.equal(own.hear('me', true), false)
  assert.equal(own.hear('other', true), false)
  assert.deepEqual([late.pause, own.pause], [0, 0])
})

test('a success of its own ends it', () => {
  const story = new Story()
  story.hear('me', false)
  story.hear('other', true)
  assert.equal(story.dissent.doubted, true)
  story.hear('me', true)
  assert.deepEqual([story.dissent.doubted, story.pause], [false, 0])
  story.hear('me', false)
  assert.equal(story.hear('other', true), true, 'and it is said anew')
  assert.equal(story.pause, 10)
})
