import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DrainTimes, drain } from '../../sidecar/drain.ts'

/** A program whose requests and tunnels last until the given moments, milliseconds; says what was done to it and when. */
async function drained(times: DrainTimes, requestsEnd: number, tunnelsEnd: number) {
  let now = 0
  let idleClosed = 0
  let ended = Number.POSITIVE_INFINITY
  const done: string[] = []
  const note = (what: string) => done.push(`${now} ${what}`)
  const alone = await drain(
    {
      begin: () => note('begin'),
      close: () => note('close'),
      closeIdle: () => {
        idleClosed += 1
      },
      requests: () => (now < requestsEnd ? 1 : 0),
      tunnels: () => (now < tunnelsEnd && now < ended ? 1 : 0),
      endTunnels: () => {
        note('end tunnels')
        ended = now + 50
      },
      destroy: () => note('destroy'),
    },
    times,
    async (ms) => {
      now += ms
    },
    () => now,
  )
  assert.ok(idleClosed > 0, 'idle connections are closed')
  return { alone, done: done.join(', ') }
}

test('an idle program is not ready for the delay, then listens no more, and ends after a moment', async () => {
  assert.deepEqual(await drained({ delay: 200, timeout: 1000 }, 0, 0), {
    alone: true,
    done: '0 begin, 200 close, 400 end tunnels, 400 destroy',
  })
})

test('work in progress is waited for', async () => {
  assert.deepEqual(await drained({ delay: 0, timeout: 1000 }, 300, 0), {
    alone: true,
    done: '0 begin, 0 close, 300 end tunnels, 300 destroy',
  })
})

test('tunnels last until the time is over, then get their FIN and a moment to end', async () => {
  assert.deepEqual(await drained({ delay: 0, timeout: 1000 }, 100, 5000), {
    alone: false,
    done: '0 begin, 0 close, 1000 end tunnels, 1050 destroy',
  })
})

test('a request that does not end is cut when the time is over', async () => {
  assert.deepEqual(await drained({ delay: 0, timeout: 1000 }, 5000, 0), {
    alone: false,
    done: '0 begin, 0 close, 1000 end tunnels, 1000 destroy',
  })
})

test('the delay is part of the time, and never longer', async () => {
  assert.deepEqual(await drained({ delay: 5000, timeout: 1000 }, 5000, 0), {
    alone: false,
    done: '0 begin, 1000 close, 1000 end tunnels, 1000 destroy',
  })
})
