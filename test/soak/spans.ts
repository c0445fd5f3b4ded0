/** Spans of time in which something held, by whom it held for. The last one may still go on. */
export class Spans {
  readonly #spans = new Map<string, { from: number; to: number }[]>()

  begin(name: string, at: number): void {
    const list = this.#spans.get(name)
    if (list) list.push({ from: at, to: Number.POSITIVE_INFINITY })
    else this.#spans.set(name, [{ from: at, to: Number.POSITIVE_INFINITY }])
  }

  end(name: string, at: number): void {
    const last = this.#spans.get(name)?.at(-1)
    if (last && last.to > at) last.to = at
  }

  /** Something that takes no time. */
  mark(name: string, at: number): void {
    this.begin(name, at)
    this.end(name, at)
  }

  /** Whether it held at any moment between two. */
  overlaps(name: string, from: number, to: number): boolean {
    return this.#spans.get(name)?.some((span) => span.from <= to && span.to >= from) ?? false
  }

  /** Forgets what ended before a moment. */
  forget(before: number): void {
    for (const [name, list] of this.#spans) {
      this.#spans.set(
        name,
        list.filter((span) => span.to >= before),
      )
    }
  }
}
