import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { env } from '../../support/peers.ts'
import { type Variant, variants } from '../../support/variants.ts'

const failTimeout = 10_000
/** So much longer it may take until a method that draws comes to a peer that it thinks little of. */
const patience = 8000

/** Three peers of which the first fails or works as told, and a request every 2 ms, each to its end. */
class Scene {
  readonly env = env(9)
  readonly group
  /** When the first peer was asked. */
  readonly asked: number[] = []
  /** How its attempts end; undefined: they go on. */
  bad: 'error' | 'ok' | undefined = 'error'
  readonly hanging: Attempt[] = []

  constructor(variant: Variant) {
    this.group = variant.make([{ max_fails: 3, fail_timeout: failTimeout }, 1, 1], this.env)
  }

  get now(): number {
    return this.env.clock.now()
  }

  end(attempt: Attempt, ending: 'error' | 'ok', call = new Call()): void {
    attempt.ending = ending
    attempt.failed = ending === 'error'
    if (ending === 'ok') {
      attempt.peerStatus = 200
      measured(attempt, call, this.now)
    }
    observe(attempt, call, this.now)
  }

  /** One request: where an attempt fails it goes on to another peer. */
  request(): void {
    this.env.clock.move(2)
    const call = new Call()
    call.target = `/items/${Math.floor(1e9 * this.env.random())}`
    call.remoteAddr = `10.${Math.floor(256 * this.env.random())}.${Math.floor(256 * this.env.random())}.1`
    call.args = '1'
    const selection = new Selection(this.group, call, this.env)
    for (let attempt = selection.next(); attempt; attempt = selection.next()) {
      const first = attempt.peer === this.group.upstream.peers[0]
      if (first) this.asked.push(this.now)
      if (first && this.bad === undefined) this.hanging.push(attempt)
      else this.end(attempt, first ? this.bad! : 'ok', call)
      if (attempt.ending === 'ok') return
    }
    assert.fail('a request that nobody has answered')
  }

  /** Requests until the first peer was asked so often, or for so long. */
  until(count: number, ms = 3 * failTimeout): void {
    const end = this.now + ms
    while (this.asked.length < count && this.now < end) this.request()
  }
}

for (const variant of variants) {
  describe(variant.title, () => {
    test('a peer that fails for ever is out after max_fails, then asked once each fail_timeout', () => {
      const scene = new Scene(variant)
      scene.until(4, failTimeout - 10)
      assert.equal(scene.asked.length, 3)
      for (let turn = 1; turn <= 4; turn++) {
        const last = scene.asked.at(-1)!
        scene.until(3 + turn)
        assert.equal(scene.asked.length, 3 + turn)
        const gap = scene.asked.at(-1)! - last
        assert.ok(gap >= failTimeout && gap < failTimeout + patience, `turn ${turn}: after ${gap} ms`)
      }
      const { fails, unavailable } = scene.group.upstream.zone.peers
      assert.deepEqual([fails[0], unavailable[0]], [7, 1])
    })

    test('while the one attempt that is let through hangs, no other goes there', () => {
      const scene = new Scene(variant)
      scene.until(3)
      scene.bad = undefined
      scene.until(4)
      assert.equal(scene.hanging.length, 1)
      scene.until(5, failTimeout - 10)
      assert.equal(scene.asked.length, 4)
      scene.end(scene.hanging[0]!, 'error')
      scene.until(5, failTimeout - 10)
      assert.equal(scene.asked.length, 4)
    })

    test('one that came back and fails for ever again is out after as many failures as before', () => {
      const scene = new Scene(variant)
      scene.until(3)
      scene.bad = 'ok'
      scene.until(20, 10 * failTimeout)
      assert.ok(scene.asked.length >= 20, 'it has a share again')
      scene.bad = 'error'
      const before = scene.asked.length
      scene.until(before + 3, 10 * failTimeout)
      assert.equal(scene.asked.length, before + 3)
      scene.until(before + 4, failTimeout - 10)
      assert.equal(scene.asked.length, before + 3)
      const { fails, unavailable } = scene.group.upstream.zone.peers
      assert.deepEqual([fails[0], unavailable[0]], [3, 2])
    })
  })
}
