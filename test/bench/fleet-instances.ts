import { monotonic } from '../../feedback/clock.ts'
import { Fleet, type FleetEnv } from '../../feedback/fleet/fleet.ts'
import { fleetOptions } from '../support/fleet-options.ts'
import { BusyGroup } from './fleet-group.ts'

/*
 * A process of its own with some instances, each with a group, a connection and exchanges of its own. Told `begin` it
 * starts to count, told `end` it says what it counted.
 */

/** What it is started with, as JSON. */
export interface Sketch {
  readonly url: string
  /** Keeps the state of one start apart from those before. */
  readonly group: string
  readonly instances: number
  readonly peers: number
  /** Part of the peers that have traffic in an interval. */
  readonly part: number
  /** Milliseconds. */
  readonly interval: number
}

/** What it counted from `begin` to `end`. Times in milliseconds. */
export interface Counted {
  readonly exchanges: number
  readonly failures: number
  readonly roundTrips: readonly number[]
  /** CPU of the process, without what the simulated traffic took. */
  readonly cpu: number
  /** Of each exchange: how long it took to gather and send, and all else that was done until the next. */
  readonly sending: readonly number[]
  readonly hearing: readonly number[]
}

const ready = 'ready'

class Instance {
  readonly fleet: Fleet
  readonly roundTrips: number[] = []
  readonly sending: number[] = []
  readonly hearing: number[] = []
  trafficMs = 0
  #seen = 0
  #activeAt = 0

  constructor({ url, group, peers, part, interval }: Sketch, place: number) {
    const busy = new BusyGroup(peers, part, place + 1)
    const env: FleetEnv = {
      now: monotonic,
      wall: () => Date.now(),
      random: Math.random,
      say: (level, text) => {
        if (level !== 'notice') console.error(text)
      },
      after: (ms, run) => {
        const timer = setTimeout(() => this.#turn(busy, run), ms)
        return () => clearTimeout(timer)
      },
    }
    const options = fleetOptions(
      { url },
      // The timeout is longer than the usual one, so that a machine that is busy is late and does not begin anew.
      { group, name: `instance-${place}`, interval, ttl: 5000, timeout: 1000 },
    )
    this.fleet = new Fleet(options, env)
    this.fleet.use([busy.upstream])
    this.fleet.start()
  }

  #turn(busy: BusyGroup, run: () => void): void {
    const { exchanges, roundTripMs } = this.fleet
    if (exchanges > this.#seen) {
      this.roundTrips.push(roundTripMs!)
      this.hearing.push(activeMs() - this.#activeAt)
    }
    this.#seen = exchanges
    const began = performance.now()
    busy.traffic(began)
    const at = performance.now()
    this.trafficMs += at - began
    run()
    this.sending.push(performance.now() - at)
    this.#activeAt = activeMs()
  }

  forget(): void {
    this.roundTrips.length = 0
    this.sending.length = 0
    this.hearing.length = 0
    this.trafficMs = 0
  }
}

async function main(sketch: Sketch): Promise<void> {
  const instances: Instance[] = []
  for (let place = 0; place < sketch.instances; place++) {
    instances.push(new Instance(sketch, place))
    // As in a fleet that has run for a while, they do not come at once.
    await new Promise((go) => setTimeout(go, sketch.interval / sketch.instances))
  }
  await Promise.all(instances.map(({ fleet }) => fleet.heard(2000)))
  const sum = (of: (instance: Instance) => number) => instances.reduce((sum, one) => sum + of(one), 0)
  let from = { cpu: process.cpuUsage(), exchanges: 0, failures: 0 }
  process.on('message', (word) => {
    const exchanges = sum(({ fleet }) => fleet.exchanges)
    const failures = sum(({ fleet }) => fleet.failures)
    if (word === 'begin') {
      for (const instance of instances) instance.forget()
      from = { cpu: process.cpuUsage(), exchanges, failures }
      return
    }
    const { user, system } = process.cpuUsage(from.cpu)
    const counted: Counted = {
      exchanges: exchanges - from.exchanges,
      failures: failures - from.failures,
      roundTrips: instances.flatMap(({ roundTrips }) => roundTrips),
      cpu: (user + system) / 1000 - sum(({ trafficMs }) => trafficMs),
      sending: instances.flatMap(({ sending }) => sending),
      hearing: instances.flatMap(({ hearing }) => hearing),
    }
    process.send!(counted, () => process.exit())
  })
  process.on('disconnect', () => process.exit())
  process.send!(ready)
}

/** How long the thread has not been waiting for something to happen, ever. */
function activeMs(): number {
  return performance.eventLoopUtilization().active
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!) as Sketch) // as fleet-measure.ts writes it
