/** Numbers of requests in the order of their coming: a ring that grows. */
export class Fifo {
  #ring = new Int32Array(64)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(id: number): void {
    const size = this.#ring.length
    if (this.#length === size) {
      const ring = new Int32Array(2 * size)
      for (let i = 0; i < size; i++) ring[i] = this.#ring[(this.#head + i) & (size - 1)]!
      this.#ring = ring
      this.#head = 0
    }
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = id
    this.#length += 1
  }

  /** The one that came first; to be asked only while there is one. */
  first(): number {
    return this.#ring[this.#head]!
  }

  /** Takes the first out; only while there is one. */
  shift(): number {
    const id = this.#ring[this.#head]!
    this.#head = (this.#head + 1) & (this.#ring.length - 1)
    this.#length -= 1
    return id
  }
}
