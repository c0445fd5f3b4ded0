/** Dice that fall the same in every run: uniform in [0, 1), 32 bits (the generator known as sfc32). */
export function seeded(seed: number): () => number {
  let a = seed | 0
  let b = 0x9e3779b9
  let c = 0x243f6a88
  let counter = 1
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return (sum >>> 0) / 4294967296
  }
  for (let i = 0; i < 12; i++) next()
  return next
}

/** Dice that fall as told, in turn; an error once they are used up. */
export function loaded(...values: number[]): () => number {
  let turn = 0
  return () => {
    const value = values[turn++]
    if (value === undefined) throw new Error(`the dice were loaded for ${values.length} throws`)
    return value
  }
}
