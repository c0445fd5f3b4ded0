import { createServer, type RequestListener } from 'node:http'
import { monotonic, setClock } from '../../feedback/clock.ts'
import { Workshop } from './tail-peer.ts'
import type { Plan } from './tail-plan.ts'

/**
 * The peers of one method, all in this process: they work on timers, so one core carries them, and what the machine
 * does to one it does to all. Started with a plan and the origin of the clock; tells the ports when it listens,
 * hears when the measured part begins, and ends with who started it.
 */

// From tail-lane.ts.
const [plan, origin] = JSON.parse(process.argv[2] ?? '') as [Plan, number]
setClock(origin)
/** When the measured part begins; far away until it is known. */
let startAt = monotonic() + 86_400_000

process.on('message', (at) => {
  startAt = Number(at)
})
process.on('disconnect', () => process.exit())
// A key press for the program that measures is not meant for its peers: they end when it does.
process.on('SIGINT', () => {})

const body = Buffer.from('done\n')

function peer(index: number): RequestListener {
  const workshop = new Workshop(plan, index)
  return (request, response) => {
    request.resume()
    const answer = (status: number) => {
      const fields = ['Content-Type', 'text/plain', 'Content-Length', String(body.length)]
      response.writeHead(status, [...fields, 'X-Drain', workshop.drainMs.toFixed(3)])
      response.end(body)
    }
    // `/MILLISECONDS` is what the request asks for.
    const end = workshop.take(monotonic() - startAt, Number(request.url?.slice(1)))
    if (end === undefined) answer(503)
    else {
      at(startAt + end, () => {
        workshop.answered()
        answer(200)
      })
    }
  }
}

/** A timer counts whole milliseconds of a clock that may be one behind: it can be early, and is asked again then. */
function at(moment: number, then: () => void): void {
  const left = moment - monotonic()
  if (left < 0.3) then()
  else setTimeout(at, left, moment, then)
}

const ports = plan.speeds.map((_, index) => {
  const server = createServer(peer(index))
  server.keepAliveTimeout = 0
  return new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', 4096, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
})
process.send?.(await Promise.all(ports))
