import type { Change } from './runtime-facts.ts'

/** A change as JSON has it: what, since when, by whom, and what the file says. Absent members mean nothing. */
export function shownChange({ kind, target, whole, value, file, at, by }: Change) {
  return {
    ...(whole ? { server: target } : { peer: target }),
    change: kind,
    ...(value === undefined ? {} : { value }),
    ...(file === undefined ? {} : { file }),
    at: new Date(at).toISOString(),
    by,
  }
}
