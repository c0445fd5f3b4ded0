/** How many numbers an exemplar takes. */
export const exemplarSize = 6

/** A measured time and the trace that it was measured in. */
export interface Exemplar {
  /** 32 and 16 lower-case hexadecimal digits. */
  readonly traceId: string
  readonly spanId: string
  readonly ms: number
  /** When, by the wall clock, milliseconds. */
  readonly wallAt: number
}

/** Hexadecimal digits that a double holds exactly, with room to spare. */
const digits = 12

/**
 * Writes an exemplar over the one before. Ids become four numbers, so that they lie in shared memory like all others.
 * @param numbers where it lies, from `at` on
 */
export function writeExemplar(numbers: Float64Array, at: number, exemplar: Exemplar): void {
  const ids = exemplar.traceId + exemplar.spanId
  numbers[at] = exemplar.ms
  numbers[at + 1] = exemplar.wallAt
  for (let i = 0; i < 4; i++) {
    numbers[at + 2 + i] = Number.parseInt(ids.slice(digits * i, digits * (i + 1)), 16)
  }
}

/** @returns undefined where none was ever written */
export function readExemplar(numbers: Float64Array, at: number): Exemplar | undefined {
  const wallAt = numbers[at + 1]!
  if (wallAt === 0) return undefined
  let ids = ''
  for (let i = 0; i < 4; i++) ids += numbers[at + 2 + i]!.toString(16).padStart(digits, '0')
  return { traceId: ids.slice(0, 32), spanId: ids.slice(32), ms: numbers[at]!, wallAt }
}
