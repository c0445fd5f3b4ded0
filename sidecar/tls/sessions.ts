/** How many sessions a thread keeps: some two kilobytes each. */
const most = 1000

/** Sessions with peers, by what they may be taken up again for. The ones not used for longest go first. */
export class Sessions {
  readonly #sessions = new Map<string, Buffer>()
  readonly #most: number

  constructor(limit = most) {
    this.#most = limit
  }

  get(lane: string): Buffer | undefined {
    const session = this.#sessions.get(lane)
    if (session === undefined) return undefined
    this.#sessions.delete(lane)
    this.#sessions.set(lane, session)
    return session
  }

  set(lane: string, session: Buffer): void {
    this.#sessions.delete(lane)
    this.#sessions.set(lane, session)
    if (this.#sessions.size <= this.#most) return
    for (const oldest of this.#sessions.keys().take(1)) this.#sessions.delete(oldest)
  }

  delete(lane: string): void {
    this.#sessions.delete(lane)
  }
}
