import { rmSync } from 'node:fs'
import { monotonic } from '../../feedback/clock.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { arrivals, regular } from './tail-arrivals.ts'
import { drive, type Measured } from './tail-driver.ts'
import { PeersProcess } from './tail-peers-process.ts'
import { arrivalRate, type Plan } from './tail-plan.ts'
import { IdealSender, SidecarSender } from './tail-senders.ts'
import { configuration, type Subject } from './tail-subjects.ts'

/** Before the measured part the same traffic runs: code is compiled, connections are open, averages are known. */
export const warmMs = 3000
/** Round robin leaves a slow peer some twenty seconds of work. */
const graceMs = 30_000
/** How often the sidecar is asked for an answer of its own, milliseconds. */
const selfMs = 10
/** Between the starts of those that run at the same time, so that their requests do not come at the same moments. */
const staggerMs = 97

export interface Batch {
  /** In the order of the subjects. */
  readonly measured: readonly Measured[]
  /** What the sidecar answers without a peer: how soon it comes to anything. */
  readonly self: Measured
}

/**
 * Measures some methods at the same time: each has its own peers and its own group of one sidecar, and all meet the
 * same requests. All that is started here has ended afterwards.
 * @param ms length of the measured part
 */
export async function measure(
  subjects: readonly Subject[],
  plan: Plan,
  seed: number,
  ms: number,
): Promise<Batch> {
  const rate = arrivalRate(plan)
  const stream = arrivals(seed, rate, warmMs + ms)
  const peers: PeersProcess[] = []
  const senders: { close(): void }[] = []
  let sidecar: Sidecar | undefined
  const leave = () => {
    if (sidecar) rmSync(sidecar.folder, { recursive: true, force: true })
  }
  process.on('exit', leave)
  try {
    for (const _ of subjects) peers.push(await PeersProcess.start(plan))
    const groups = subjects.flatMap(({ words }, i) =>
      words === undefined ? [] : [{ words, ports: peers[i]!.ports }],
    )
    sidecar = await start(configuration(groups))
    const { ports } = sidecar
    const first = monotonic() + 200
    let group = 0
    const runs = subjects.map(({ words }, i) => {
      const begin = first + i * staggerMs
      const startAt = begin + warmMs
      const own = peers[i]!
      own.begin(startAt)
      let sender: IdealSender | SidecarSender
      if (words === undefined) sender = new IdealSender(own.ports, plan, startAt)
      else {
        group += 1
        sender = new SidecarSender(ports[`PORT${group}`]!)
      }
      senders.push(sender)
      return drive({ arrivals: stream, sender, start: begin, from: warmMs, graceMs })
    })
    const selfSender = new SidecarSender(sidecar.port)
    senders.push(selfSender)
    const steady = regular(selfMs, warmMs + ms)
    const self = drive({ arrivals: steady, sender: selfSender, start: first, from: warmMs, graceMs })
    const found = { measured: await Promise.all(runs), self: await self }
    if (!sidecar.running) throw new Error(`bench: the sidecar ended:\n${sidecar.stderr}`)
    return found
  } finally {
    for (const sender of senders) sender.close()
    await Promise.all([sidecar?.stop(), ...peers.map((one) => one.stop())])
    process.off('exit', leave)
  }
}
