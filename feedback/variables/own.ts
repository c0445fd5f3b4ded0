import type { Call } from '../call.ts'

type Read = (call: Call) => string

/** A variable that a configuration declares: by `set`, by a named capture, by `map`, or by several of these. */
export interface Own {
  /** In `call.values` and `call.cache`. */
  readonly slot: number
  /** Undefined until a map of that name is declared. */
  compute: Read | undefined
  volatile: boolean
  /** A map that reads itself, through others or not, finds nothing instead of running for ever. */
  running: boolean
}

/** The value of a declared variable that nothing has set. */
export function computed(own: Own, call: Call): string {
  const { compute, slot } = own
  if (compute === undefined || own.running) return ''
  if (own.volatile) return guarded(own, compute, call)
  const known = call.cache[slot]
  if (known !== undefined) return known
  const value = guarded(own, compute, call)
  call.cache[slot] = value
  return value
}

function guarded(own: Own, compute: Read, call: Call): string {
  own.running = true
  try {
    return compute(call)
  } finally {
    own.running = false
  }
}
