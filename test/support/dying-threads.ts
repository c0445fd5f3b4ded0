import { dial } from './client.ts'
import { eventually } from './invariants.ts'
import type { Sidecar } from './sidecar.ts'

/** How to start a program whose threads end one after the other, by an exception and from outside in turn, at each SIGUSR2. */
export const mortal = { env: { EVENKEEL_TEST_FAULTS: '1' } }

/** Resolves once so many have died and been replaced, and all `threads` are there again. */
export async function replaced(sidecar: Sidecar, count: number, threads = 4): Promise<void> {
  await eventually(`${count} are replaced`, async () => {
    const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
    return text.includes(`evenkeel_threads ${threads}\n`) && text.includes(`replaced_total ${count}\n`)
  })
}

/** Has each of four threads die while clients ask. Those of the thread that died lose their connections. */
export async function dieInTurn(sidecar: Sidecar): Promise<void> {
  for (let count = 1; count <= 4; count++) {
    const clients = Array.from({ length: 12 }, async () => {
      using client = await dial(sidecar.port)
      for (let i = 0; i < 20; i++) await client.ask('/')
    })
    sidecar.signal('SIGUSR2')
    await Promise.allSettled(clients)
    await replaced(sidecar, count)
  }
}
