import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { RecentList } from '../../feedback/feed.ts'
import type { Facts } from './facts.ts'
import { LiveState } from './live-state.ts'

/** How often the state is told, and how often attempts are, milliseconds. */
const stateMs = 1000
const attemptsMs = 250
/** Making the state may take a hundredth of the time; with thousands of peers it is told less often, but at least so often. */
const costFactor = 100
const longestMs = 3000
/** Attempts in an event at most: as many a second as one can hope to see pass by. */
const mostAttempts = 25
/** Who watches at once, over all addresses of the admin server. */
export const mostViewers = 16
/**
 * What may wait for a viewer to take it, bytes, or so many times what one is told at first, where that is more: many
 * seconds of it. Who is slower is let go.
 */
const mostWaiting = 1 << 20
const mostFirsts = 4

/** All who watch a program. What they are told is made once; while there is nobody, nothing is. */
class Stage {
  readonly #facts: Facts
  readonly #state: LiveState
  readonly #viewers = new Set<ServerResponse>()
  readonly #recent = new RecentList(mostAttempts)
  #stop: (() => void) | undefined
  /** How much is told at first, bytes. */
  #first = 0

  constructor(facts: Facts) {
    this.#facts = facts
    this.#state = new LiveState(facts)
  }

  get full(): boolean {
    return this.#viewers.size >= mostViewers
  }

  /** Tells one more of everything from now on, and first of what there is. */
  join(viewer: ServerResponse): void {
    this.#tell(this.#look())
    const probes = this.#state.probes(true)
    const all = event('layout', this.#state.layout) + (probes ? event('probes', probes) : '')
    const first = Buffer.from(all + event('state', this.#state.state))
    this.#first = first.length
    viewer.write(first)
    this.#viewers.add(viewer)
    this.#stop ??= this.#begin()
    viewer.once('close', () => {
      this.#viewers.delete(viewer)
      if (this.#viewers.size > 0) return
      this.#stop?.()
      this.#stop = undefined
    })
  }

  #begin(): () => void {
    this.#recent.take()
    const ignore = this.#facts.watch((batch) => this.#recent.merge(batch))
    let states: NodeJS.Timeout
    const tell = () => {
      const began = performance.now()
      this.#tell(this.#look() + event('state', this.#state.state))
      const cost = performance.now() - began
      states = setTimeout(tell, Math.min(longestMs, Math.max(stateMs, costFactor * cost)) - cost).unref()
    }
    states = setTimeout(tell, stateMs).unref()
    const attempts = setInterval(() => {
      if (!this.#recent.empty) this.#tell(event('attempts', JSON.stringify(this.#recent.take())))
    }, attemptsMs)
    // Watching is no reason for the program to go on.
    attempts.unref()
    return () => {
      ignore()
      clearTimeout(states)
      clearInterval(attempts)
    }
  }

  /** Looks at what there is. @returns events for those who have the layout from before */
  #look(): string {
    const changed = this.#state.look()
    const probes = this.#state.probes(false)
    return (changed ? event('layout', this.#state.layout) : '') + (probes ? event('probes', probes) : '')
  }

  #tell(text: string): void {
    if (text === '') return
    const bytes = Buffer.from(text)
    const most = Math.max(mostWaiting, mostFirsts * this.#first)
    for (const viewer of this.#viewers) {
      if (viewer.writableLength + bytes.length > most) viewer.destroy()
      else viewer.write(bytes)
    }
  }
}

function event(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

/** One for all addresses that show the same program. */
const stages = new WeakMap<Facts, Stage>()

function stageOf(facts: Facts): Stage {
  const stage = stages.get(facts) ?? new Stage(facts)
  stages.set(facts, stage)
  return stage
}

/**
 * `/live`: what the page shows, as server-sent events: `layout` first and whenever it changes, `state` every second,
 * `probes` and `attempts` as there are any. See live-state.ts and feedback/feed.ts for what is in them.
 */
export function live(app: FastifyInstance, facts: Facts): void {
  const viewers = new Set<ServerResponse>()
  // Otherwise they would keep an address open that the configuration no longer has.
  app.addHook('preClose', async () => {
    for (const viewer of viewers) viewer.end()
  })
  app.get('/live', (request, reply) => {
    reply.header('cache-control', 'no-store')
    // A page of another site could not read it, but it could take all the places.
    const site = request.headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none') {
      return reply.code(403).send({ error: 'the request comes from another site' })
    }
    const stage = stageOf(facts)
    if (stage.full) {
      const error = `${mostViewers} pages watch already, which is the most that may; close one of them`
      return reply.code(503).header('retry-after', '10').send({ error })
    }
    reply.hijack()
    const viewer = reply.raw
    viewer.on('error', () => viewer.destroy())
    viewer.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // nginx in between would wait for more.
      'x-accel-buffering': 'no',
    })
    if (request.method === 'HEAD') return viewer.end()
    viewers.add(viewer)
    viewer.once('close', () => viewers.delete(viewer))
    stage.join(viewer)
  })
}
