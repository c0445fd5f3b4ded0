import { type Deed, now } from './deed.ts'
import { type Flow, judge, type LogRecord, type Outcome, type Witness } from './judge.ts'

/** How long after its end a request is judged at the earliest: what peers tell is under way so long. */
const settleMs = 300
interface Entry {
  readonly id: string
  readonly flow: Flow
  readonly from: number
  to: number
  outcome: Outcome | undefined
  record: LogRecord | undefined
  deeds: Deed[]
}

/** Every request that a client has made: what was seen of it, what was logged of it, and what peers did with it. */
export class Ledger {
  /** Requests that were judged. */
  judged = 0
  /** Failures that clients saw and a peer caused, by what it did. */
  readonly byPeers = new Map<string, number>()
  peerErrors = 0
  /** What nobody else did; the first of them are kept. */
  errors = 0
  readonly told: string[] = []
  /** Records without a request's name: heads that were never whole. */
  unnamed = 0
  /** Heads of requests that clients broke off in the midst. */
  torn = 0
  readonly #entries = new Map<string, Entry>()
  readonly #done = new Map<string, number>()
  readonly #witness: Witness
  readonly #patienceMs: number
  #serial = 0

  /** @param patienceMs how long evidence for what cannot be explained may take to come */
  constructor(witness: Witness, patienceMs: number) {
    this.#witness = witness
    this.#patienceMs = patienceMs
  }

  /** Requests that are not judged yet. */
  get open(): number {
    return this.#entries.size
  }

  /** A client is about to send a request. @returns its name */
  begin(flow: Flow): string {
    const id = `q${(this.#serial++).toString(36)}`
    this.#entries.set(id, { id, flow, from: now(), to: 0, outcome: undefined, record: undefined, deeds: [] })
    return id
  }

  end(id: string, outcome: Outcome): void {
    const entry = this.#entries.get(id)
    if (!entry || entry.outcome) return
    entry.outcome = outcome
    entry.to = now()
  }

  /** It was never sent as a whole: whether it is logged nobody can say. */
  forget(id: string): void {
    this.#entries.delete(id)
    this.#done.set(id, now())
  }

  deed(deed: Deed): void {
    // Probes have no name.
    if (deed.id !== '') this.#entries.get(deed.id)?.deeds.push(deed)
  }

  record(record: LogRecord): void {
    const id = /[?&]id=(\w+)/.exec(record.path)?.[1]
    if (id === undefined) {
      this.unnamed += 1
      return
    }
    const entry = this.#entries.get(id)
    if (entry && !entry.record) entry.record = record
    else this.fail(`${record.path}: logged ${entry || this.#done.has(id) ? 'twice' : 'though nobody asked'}`)
  }

  /** Judges what is over. @param last whether nothing more will come: what lacks evidence is judged without */
  settle(last = false): void {
    const at = now()
    for (const entry of this.#entries.values()) {
      const { id, flow, outcome, record } = entry
      if (!outcome || at - entry.to < settleMs) continue
      const late = last || at - entry.to > this.#patienceMs
      if (!record) {
        if (late) {
          this.fail(`${flow.name} ${id}: ${describe(outcome)} and not in the access log`)
          this.#close(entry)
        }
        continue
      }
      const judgement = judge({ ...entry, outcome, record }, this.#witness)
      if (judgement.by === 'ours') {
        if (!late) continue
        const deeds = entry.deeds.map(({ peer, did, status }) => `${peer} ${did} ${status ?? ''}`.trim())
        this.fail(
          `${flow.name} ${id}: ${judgement.text}; client: ${describe(outcome)}; peers: ${deeds.join(', ') || 'nothing'}; ` +
            `log: ${record.status} ${record.denial ?? ''} ${record.attempts.map((a) => `${this.#witness.nameOf(a.peer) ?? a.peer} ${a.reason ?? a.status} ${a.at_ms}+${a.response_ms}${a.reused ? ' reused' : ''}`).join(', ')}`,
        )
      } else if (judgement.by === 'peers') {
        this.peerErrors += 1
        this.byPeers.set(judgement.text, (this.byPeers.get(judgement.text) ?? 0) + 1)
      }
      this.judged += 1
      this.#close(entry)
    }
    for (const [id, when] of this.#done) {
      if (at - when < 10_000) break
      this.#done.delete(id)
    }
    if (!last) return
    for (const entry of this.#entries.values()) {
      this.fail(`${entry.flow.name} ${entry.id}: not over`)
      this.#close(entry)
    }
  }

  fail(text: string): void {
    this.errors += 1
    if (this.told.length < 50) this.told.push(text)
  }

  #close(entry: Entry): void {
    this.#entries.delete(entry.id)
    this.#done.set(entry.id, now())
  }
}

function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'answer':
      return `answer ${outcome.status} of ${outcome.peer ?? 'its own'}`
    case 'cut':
      return `answer ${outcome.status} cut`
    case 'left':
      return 'left'
    case 'wrong':
      return outcome.text
  }
}
