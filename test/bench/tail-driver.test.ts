import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { monotonic } from '../../feedback/clock.ts'
import { regular } from './tail-arrivals.ts'
import { type Done, KeptClient } from './tail-client.ts'
import { drive } from './tail-driver.ts'
import { PeersProcess } from './tail-peers-process.ts'
import type { Plan } from './tail-plan.ts'
import { IdealSender } from './tail-senders.ts'

/** A server that answers when it is told to. */
async function hesitant() {
  const waiting: (() => void)[] = []
  const server = createServer((request, response) => {
    const status = Number(request.url?.slice(1))
    waiting.push(() => {
      if (status === 0) request.socket.destroy()
      else {
        response.statusCode = status
        response.end('body')
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A listening TCP server has such an address.
  const { port } = server.address() as AddressInfo
  return {
    port,
    waiting,
    /** Waits until so many are waiting, and answers the oldest. */
    async answer(count: number): Promise<void> {
      while (waiting.length < count) await new Promise((resolve) => setTimeout(resolve, 1))
      waiting.shift()?.()
    },
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

test('measures from when a request was due, whoever failed, and what was never answered', async () => {
  const found = await drive({
    arrivals: regular(10, 100),
    sender: {
      send(request: number, _work: number, done: Done) {
        if (request === 9) return
        setTimeout(done, request === 8 ? 60 : 1, request === 2 || request === 5 ? 503 : 200)
      },
    },
    // Late from the beginning: by as much are the times longer.
    start: monotonic() - 200,
    from: 50,
    graceMs: 100,
  })
  assert.equal(found.times.length, 5, 'the first half is not measured')
  assert.equal(found.failed, 2, 'a 503 and one without an answer')
  assert.equal(found.unanswered, 1)
  assert.ok(found.times.every((time) => time > 100))
  assert.ok(found.times[3]! > 160 + 15, `${found.times[3]}`)
  assert.ok(found.late.every((late) => late >= 105))
})

test('keeps connections, has one request at a time on each and no more of them than allowed', async () => {
  using server = await hesitant()
  const client = new KeptClient(server.port, 2)
  const heard: (number | undefined)[] = []
  const ask = (status: number) =>
    new Promise<void>((resolve) => {
      client.get(`/${status}`, (found) => {
        heard.push(found)
        resolve()
      })
    })
  try {
    const all = [200, 503, 201].map(ask)
    await server.answer(2)
    await all[0]
    // The third has come on the connection that was freed.
    await server.answer(2)
    await server.answer(1)
    await Promise.all(all)
    assert.deepEqual(heard, [200, 503, 201])
  } finally {
    client.close()
  }
})

test('a broken connection is the end of its request alone', async () => {
  using server = await hesitant()
  const client = new KeptClient(server.port, 1)
  const heard: (number | undefined)[] = []
  try {
    const all = [0, 200].map(
      (status) =>
        new Promise<void>((resolve) => {
          client.get(`/${status}`, (found) => {
            heard.push(found)
            resolve()
          })
        }),
    )
    await server.answer(1)
    await all[0]
    await server.answer(1)
    await all[1]
    assert.deepEqual(heard, [undefined, 200])
  } finally {
    client.close()
  }
})

test('peers do the work that requests ask for and fail as planned, which the best possible knows', async () => {
  const plan: Plan = {
    speeds: [2, 1],
    faults: [{ peer: 0, from: -1e9, until: 1e9, rate: 1, fails: true }],
  }
  const peers = await PeersProcess.start(plan)
  const start = monotonic() + 50
  peers.begin(start)
  const { at } = regular(10, 100)
  const work = new Float64Array(at.length).fill(20)
  const measured = async (known: Plan) => {
    const sender = new IdealSender(peers.ports, known, start)
    try {
      return await drive({ arrivals: { at, work }, sender, start: monotonic() + 20, from: 0, graceMs: 5000 })
    } finally {
      sender.close()
    }
  }
  try {
    const best = await measured(plan)
    assert.deepEqual([best.failed, best.unanswered], [0, 0])
    assert.ok(
      best.times.every((time) => time > 19),
      `${best.times}`,
    )
    const blind = await measured({ ...plan, faults: [] })
    assert.ok(blind.failed > 0 && blind.unanswered === 0)
  } finally {
    await peers.stop()
  }
})
