import type { Heard, PeerRecord, Sent, Update } from '../../feedback/fleet/told.ts'

/** An instance's parts of a peer's levels. */
type Part = Pick<PeerRecord, 'stuck' | 'stuckStart' | 'weight' | 'weighted' | 'conns' | 'leased'>

interface Lease {
  readonly leased: number
  /** Whether that is less than needed, and less than a fair part. */
  readonly short: boolean
  /** Whether it is less than needed. */
  readonly craved: boolean
}

interface Member {
  heardAt: number
  readonly parts: Map<string, Part>
}

const nobody: PeerRecord = {
  members: 0,
  answers: 0,
  good: 0,
  ejections: 0,
  ejectedAt: 0,
  values: 0,
  valueSum: 0,
  valueAt: 0,
  stuck: 0,
  stuckStart: 0,
  weight: 0,
  weighted: 0,
  conns: 0,
  leased: 0,
  shortAt: 0,
  cravedAt: 0,
}
const none: Lease = { leased: 0, short: false, craved: false }
const nothing: Part = { stuck: 0, stuckStart: 0, weight: 0, weighted: 0, conns: 0, leased: 0 }

/** What may have been on its way for longer is no news, milliseconds. */
const promptMs = 2000
/** How many that are overdue one exchange takes out. */
const burials = 8
/** A sum of weights below this is what rounding has left of none. */
const leastWeight = 1e-6

/**
 * What a Redis server does in an exchange of fleet/exchange.ts, on a clock that is moved: the same numbers for the same
 * exchanges. It loses nothing by itself; a new one is what a server is that has lost all.
 */
export class FleetStore {
  readonly #members = new Map<string, Member>()
  readonly #records = new Map<string, { readonly record: PeerRecord; readonly version: number }>()
  #epoch: string | undefined
  #born = 0
  #version = 0
  #requests = 0
  #retries = 0

  /** @param now milliseconds of the server's clock, with a fraction */
  exchange(sent: Sent, now: number): Heard {
    if (this.#epoch === undefined) {
      this.#epoch = `${Math.floor(now / 1000)}.${Math.round((now % 1000) * 1000)}`
      this.#born = now
    }
    this.#version += 1
    this.#buryOverdue(sent, now)
    const before = this.#members.get(sent.id)
    // Who begins anew knows nothing of the parts that it has from before.
    if (before && sent.epoch !== this.#epoch) this.#bury(sent.id, before.parts)
    const known = this.#members.get(sent.id)
    const current = sent.epoch === this.#epoch && sent.version < this.#version
    const prompt =
      sent.epoch === this.#epoch
        ? known !== undefined && now - this.#born - sent.at < promptMs
        : known === undefined || now - known.heardAt < promptMs
    const member = known ?? { heardAt: now, parts: new Map<string, Part>() }
    member.heardAt = now
    this.#members.set(sent.id, member)
    const at = now - this.#born
    const leases = sent.updates.map(({ name, update }) => this.#take(member, name, update, sent, at, prompt))
    this.#requests += sent.requests
    this.#retries += sent.retries
    const since = current ? sent.version : 0
    const peers = new Map<string, PeerRecord>()
    for (const [name, { record, version }] of this.#records) if (version > since) peers.set(name, record)
    return {
      epoch: this.#epoch,
      version: this.#version,
      at,
      members: this.#members.size,
      fresh: known === undefined || !current,
      requests: this.#requests,
      retries: this.#retries,
      leases,
      peers,
      probes: new Map(),
    }
  }

  /** An instance ends: whoever comes next takes its parts out. */
  depart(id: string): void {
    const member = this.#members.get(id)
    if (member) member.heardAt = 0
  }

  #buryOverdue({ id, ttl }: Sent, now: number): void {
    const overdue = [...this.#members].filter(([, { heardAt }]) => heardAt <= now - ttl)
    overdue.sort(([a, { heardAt: one }], [b, { heardAt: other }]) => one - other || (a < b ? -1 : 1))
    for (const [one, { parts }] of overdue.slice(0, burials)) {
      if (one !== id) this.#bury(one, parts)
    }
  }

  #bury(one: string, parts: ReadonlyMap<string, Part>): void {
    for (const [name, part] of parts) {
      const { record } = this.#records.get(name)!
      this.#keep(name, { ...record, members: record.members - 1, ...shifted(record, part, nothing) })
    }
    this.#members.delete(one)
  }

  /** @returns what the instance may have in progress by its lease */
  #take(member: Member, name: string, update: Update, sent: Sent, at: number, prompt: boolean): number {
    const record = this.#records.get(name)?.record ?? nobody
    const before = member.parts.get(name)
    const own = before ?? nothing
    const { leased, short, craved } = update.leaves ? none : this.#lease(record, own, update, sent, at)
    const part: Part = update.leaves
      ? nothing
      : {
          stuck: update.stuck,
          stuckStart: update.stuck * at - update.stuckAge,
          weight: update.weight,
          weighted: update.weight * update.average,
          conns: update.conns,
          leased,
        }
    if (update.leaves) member.parts.delete(name)
    else member.parts.set(name, part)
    const joined = update.leaves ? 0 : 1
    this.#keep(name, {
      members: record.members + joined - (before ? 1 : 0),
      answers: record.answers + update.answers,
      good: record.good + update.good,
      ejections: record.ejections + update.ejections,
      ejectedAt: update.ejections > 0 && prompt ? at : record.ejectedAt,
      values: record.values + update.values,
      valueSum: record.valueSum + update.valueSum,
      valueAt: update.values > 0 && prompt ? Math.max(record.valueAt, at - update.valueAge) : record.valueAt,
      ...shifted(record, own, part),
      shortAt: short ? at : record.shortAt,
      cravedAt: craved ? at : record.cravedAt,
    })
    return leased
  }

  #lease(record: PeerRecord, own: Part, update: Update, { ttl, members }: Sent, at: number): Lease {
    const { limit, have, want, need, conns } = update
    if (limit <= 0) return none
    const young = at < ttl
    const share = Math.max(1, Math.floor(limit / Math.max(this.#members.size, young ? members : 0)))
    let most = Math.min(want, limit - (record.leased - own.leased))
    if (young) most = Math.min(most, Math.max(have, share))
    const leased = Math.max(conns, most)
    return { leased, short: leased < Math.min(need, share), craved: leased < Math.min(need, limit) }
  }

  #keep(name: string, record: PeerRecord): void {
    if (record.members > 0) this.#records.set(name, { record, version: this.#version })
    else this.#records.delete(name)
  }
}

/** The levels of a record with another part of one instance in them. */
function shifted(record: PeerRecord, from: Part, to: Part): Part {
  const stuck = record.stuck + to.stuck - from.stuck
  const weight = record.weight + to.weight - from.weight
  const some = weight >= leastWeight
  return {
    stuck,
    stuckStart: stuck > 0 ? record.stuckStart + to.stuckStart - from.stuckStart : 0,
    weight: some ? weight : 0,
    weighted: some ? record.weighted + to.weighted - from.weighted : 0,
    conns: record.conns + to.conns - from.conns,
    leased: record.leased + to.leased - from.leased,
  }
}
