import { seeded } from '../support/dice.ts'

/** Chance for the generators: everything that one seed decides. */
export class Draw {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = seeded(seed)
  }

  /** A whole number from 0 to one below `count`. */
  below(count: number): number {
    return Math.floor(this.#next() * count)
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  chance(probability: number): boolean {
    return this.#next() < probability
  }

  pick<T>(list: readonly T[]): T {
    // Lists here are never empty.
    return list[this.below(list.length)]!
  }

  hex(digits: number): string {
    let text = ''
    while (text.length < digits) text += this.below(16).toString(16)
    return text
  }

  /** Letters in any case. */
  cased(text: string): string {
    const how = this.below(4)
    if (how === 0) return text.toUpperCase()
    if (how === 1) return text.toLowerCase()
    if (how === 2) return text
    return text.replace(/[a-z]/gi, (letter) =>
      this.chance(0.5) ? letter.toUpperCase() : letter.toLowerCase(),
    )
  }

  /** A length: mostly small, now and then one that fills buffers. */
  size(): number {
    const how = this.#next()
    if (how < 0.15) return 0
    if (how < 0.8) return this.between(1, 200)
    if (how < 0.93) return this.between(200, 9000)
    return how < 0.99 ? this.between(9000, 70_000) : this.between(70_000, 300_000)
  }

  /** Where a text of this length is cut into pieces. */
  cuts(length: number): number[] {
    if (length < 2 || this.chance(0.35)) return []
    if (length < 600 && this.chance(0.06)) return Array.from({ length: length - 1 }, (_, i) => i + 1)
    const places = new Set<number>()
    for (let left = this.between(1, 8); left > 0; left--) places.add(this.between(1, length - 1))
    return [...places].sort((a, b) => a - b)
  }
}
