import { rmSync } from 'node:fs'
import { monotonic } from '../../feedback/clock.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { arrivals } from './tail-arrivals.ts'
import { drive, type Measured } from './tail-driver.ts'
import { PeersProcess } from './tail-peers-process.ts'
import { arrivalRate, type Plan } from './tail-plan.ts'
import { IdealSender, SidecarSender } from './tail-senders.ts'
import { configuration, type Subject } from './tail-subjects.ts'

/** Before the measured part the same traffic runs: code is compiled, connections are open, averages are known. */
export const warmMs = 3000
/** Round robin leaves a slow peer some twenty seconds of work. */
const graceMs = 30_000
/** Between the starts of those that run at the same time, so that their requests do not come at the same moments. */
const staggerMs = 97

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
): Promise<readonly Measured[]> {
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
    if (groups.length > 0) sidecar = await start(configuration(groups))
    const first = monotonic() + 200
    let group = 0
    const runs = subjects.map(({ words }, i) => {
      const begin = first + i * staggerMs
      const startAt = begin + warmMs
      const { ports } = peers[i]!
      peers[i]!.begin(startAt)
      let sender: IdealSender | SidecarSender
      if (words === undefined) sender = new IdealSender(ports, plan, startAt)
      else {
        group += 1
        sender = new SidecarSender(sidecar!.ports[`PORT${group}`]!)
      }
      senders.push(sender)
      return drive({ arrivals: stream, sender, start: begin, from: warmMs, graceMs })
    })
    const found = await Promise.all(runs)
    if (sidecar && !sidecar.running) throw new Error(`bench: the sidecar ended:\n${sidecar.stderr}`)
    return found
  } finally {
    for (const sender of senders) sender.close()
    await Promise.all([sidecar?.stop(), ...peers.map((one) => one.stop())])
    process.off('exit', leave)
  }
}
