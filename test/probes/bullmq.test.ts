import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { monotonic } from '../../feedback/clock.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { SharedOptions } from '../../probes/shared.ts'
import { Prober } from '../../probes/timer.ts'
import { TestBoard } from '../support/board.ts'
import { answered, liveProbe, scriptedKind } from '../support/live-probe.ts'
import { group, type PeerSketch } from '../support/peers.ts'
import { type RedisServer, redisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'

let server: RedisServer
/** Who was asked, by which instance, and when. */
let asked: { peer: string; by: string; at: number }[] = []
/** Peers whose probes fail. */
const ill = new Set<string>()
let instances: Instance[] = []

before(async () => {
  server = await redisServer()
})
after(() => server.stop())
beforeEach(async () => {
  asked = []
  ill.clear()
  await server.command('FLUSHALL')
})
afterEach(async () => {
  await Promise.all(instances.map((instance) => instance.end()))
  instances = []
})

interface Sketch {
  readonly peers?: readonly PeerSketch[]
  readonly probe?: Partial<LiveProbe>
  readonly ports?: readonly number[]
  readonly cluster?: boolean
  readonly options?: Partial<SharedOptions>
}

/** One instance of the fleet, with a group of its own. */
class Instance {
  readonly id: string
  readonly upstream: Upstream
  readonly board: TestBoard
  readonly prober: Prober
  /** What the answers wait for. */
  hold: Promise<void> | undefined

  constructor(id: string, { peers = [1], probe = {}, ports, cluster, options }: Sketch = {}) {
    this.id = id
    this.upstream = group(peers)
    this.board = new TestBoard(id, ports ?? [server.port], [this.upstream], cluster)
    this.prober = new Prober(
      {
        now: monotonic,
        wall: Date.now,
        random: Math.random,
        after(ms, run) {
          const timer = setTimeout(run, ms)
          return () => clearTimeout(timer)
        },
        say: (text) => assert.fail(text),
      },
      options,
    )
    this.prober.share(this.board)
    this.probe(probe)
    instances.push(this)
  }

  /** Puts a probe in the place of the one before. */
  probe(more: Partial<LiveProbe>): void {
    const kind = scriptedKind(async ({ name }) => {
      asked.push({ peer: name, by: this.id, at: performance.now() })
      await this.hold
      return answered({ passed: !ill.has(name) })
    })
    const probe = liveProbe(this.upstream, kind, { interval: 300, timeout: 200, scope: 'fleet', ...more })
    this.prober.use([probe])
  }

  get health(): string {
    const { zone, peers } = this.upstream
    return peers.map(({ index }) => zone.peers.probeHealth[index]).join('')
  }

  counted(peer = 0): number {
    return this.upstream.zone.peers.probes[this.upstream.peers[peer]!.index]!
  }

  async end(): Promise<void> {
    await this.prober.stop()
    this.board.close()
  }
}

function make(count: number, sketch: Sketch = {}): Instance[] {
  return Array.from({ length: count }, (_, i) => new Instance(`i${i}`, sketch))
}

/** Keys of the queues, without what goes before and their names. */
async function schedulers(): Promise<string[]> {
  const keys = (await server.command('KEYS', '*:repeat')) as string[]
  const all = await Promise.all(keys.map((key) => server.command('ZRANGE', key, 0, -1) as Promise<string[]>))
  return all.flat().sort()
}

for (const count of [1, 3, 10]) {
  test(`a peer gets one probe an interval of ${count} instance${count === 1 ? '' : 's'}`, async () => {
    make(count)
    await until(() => asked.length >= 2)
    asked = []
    await sleep(3000)
    assert.ok(asked.length >= 8 && asked.length <= 11, `${asked.length} in 10 intervals`)
    await sleep(100)
    for (const instance of instances) {
      assert.ok(Math.abs(instance.counted() - instances[0]!.counted()) <= 1)
      assert.ok(instance.counted() >= 10, 'all hear of all')
    }
    assert.deepEqual(await schedulers(), ['backend/health/0-1'])
  })
}
