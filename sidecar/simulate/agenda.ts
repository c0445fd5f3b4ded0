/** What ends when: a heap of moments, each with the number of a request. Of equal moments the first entered comes first. */
export class Agenda {
  #times = new Float64Array(64)
  #turns = new Float64Array(64)
  #ids = new Int32Array(64)
  #length = 0
  #turn = 0

  /** The next moment; Infinity when there is none. */
  get next(): number {
    return this.#length > 0 ? this.#times[0]! : Number.POSITIVE_INFINITY
  }

  add(time: number, id: number): void {
    if (this.#length === this.#times.length) this.#grow()
    const turn = this.#turn++
    let i = this.#length++
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (this.#times[parent]! <= time) break
      this.#move(parent, i)
      i = parent
    }
    this.#put(i, time, turn, id)
  }

  /** Takes the next out; only while there is one. @returns the request's number */
  take(): number {
    const id = this.#ids[0]!
    const last = --this.#length
    const time = this.#times[last]!
    const turn = this.#turns[last]!
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= last) break
      if (child + 1 < last && this.#before(child + 1, this.#times[child]!, this.#turns[child]!)) child += 1
      if (!this.#before(child, time, turn)) break
      this.#move(child, i)
      i = child
    }
    this.#put(i, time, turn, this.#ids[last]!)
    return id
  }

  #before(i: number, time: number, turn: number): boolean {
    const mine = this.#times[i]!
    return mine < time || (mine === time && this.#turns[i]! < turn)
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#times[from]!, this.#turns[from]!, this.#ids[from]!)
  }

  #put(i: number, time: number, turn: number, id: number): void {
    this.#times[i] = time
    this.#turns[i] = turn
    this.#ids[i] = id
  }

  #grow(): void {
    const size = 2 * this.#times.length
    const wider = <T extends Float64Array | Int32Array>(to: T, from: T): T => {
      to.set(from)
      return to
    }
    this.#times = wider(new Float64Array(size), this.#times)
    this.#turns = wider(new Float64Array(size), this.#turns)
    this.#ids = wider(new Int32Array(size), this.#ids)
  }
}
