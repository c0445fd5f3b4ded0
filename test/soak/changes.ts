import { change } from '../support/changing.ts'
import type { Sidecar } from '../support/sidecar.ts'

/** Groups whose peers are changed while the program runs. */
export const changed = ['rr', 'ring', 'lc', 'rnd', 'fb', 'line'] as const
/** Whoever is left alone keeps every request answered. */
export const changeable = ['a', 'b', 'm', 'n', 'k'] as const

/**
 * Changes one peer of one group, or takes all changes of a group back.
 * @returns what is wrong; undefined: it was granted, or refused with a reason
 */
export async function changeSomething(
  sidecar: Sidecar,
  address: (name: string) => string,
  dice: () => number,
): Promise<string | undefined> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(dice() * list.length)]!
  const group = pick(changed)
  const peer = address(pick(changeable))
  const path = `${group}/peers/${peer}`
  const asking = () => {
    switch (Math.floor(dice() * 8)) {
      case 0:
        return change(sidecar, 'DELETE', `${group}/changes`)
      case 1:
        return change(sidecar, 'PATCH', path, { weight: 1 + Math.floor(dice() * 9) })
      case 2:
        return change(sidecar, 'PATCH', path, { max_conns: pick([0, 1, 4, 50]) })
      case 3:
        return change(sidecar, 'DELETE', path)
      case 4:
        return change(sidecar, 'POST', `${group}/peers`, { server: peer })
      case 5:
        return change(sidecar, 'PATCH', path, { state: 'up', weight: null, max_conns: null })
      default:
        return change(sidecar, 'PATCH', path, { state: pick(['down', 'drain', 'up', null]) })
    }
  }
  const { status, error } = await asking()
  if (status === 200) return undefined
  // A peer that a reload or a change before it has taken away; or the last one.
  if ((status === 404 || status === 409) && error !== undefined && error !== '') return undefined
  return `a change of ${path} was answered ${status} ${error}`
}
