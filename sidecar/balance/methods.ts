import { feedback } from './feedback.ts'
import { hash } from './hash.ts'
import { ipHash } from './ip-hash.ts'
import { leastConn } from './least-conn.ts'
import { leastTime } from './least-time.ts'
import type { Method } from './method.ts'
import { random } from './random.ts'
import { roundRobin } from './round-robin.ts'

/** Every balancing method. A new one is its own file and one line here. */
export const methods = [
  roundRobin,
  leastConn,
  random,
  hash,
  ipHash,
  leastTime,
  feedback,
] as const satisfies readonly Method[]

/** What a group has whose block names no method; it has no directive of its own. */
export const defaultMethod = roundRobin
