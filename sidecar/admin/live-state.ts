import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import type { Facts } from './facts.ts'
import { unreadiness } from './health.ts'
import { type GroupLayout, lookAt, type Shown } from './live-layout.ts'
import { groupState, probeRow, words } from './live-numbers.ts'
import { waysState } from './live-ways.ts'
import { pageEdition } from './page.ts'
import { type NameFacts, nameText, shownResolvers } from './resolver-facts.ts'
import { rounded } from './tree.ts'

/*
 * What the live page is told, as texts of three events: what rarely changes (`layout`), the numbers of every second
 * (`state`) in the same order, and what probes have found (`probes`).
 */

/** Makes the events. One serves everybody who watches. */
export class LiveState {
  readonly #facts: Facts
  readonly #page = pageEdition()
  #shown: readonly Shown[] = []
  #layout = ''
  #number = 0
  /** What was last told of each probe of each peer. */
  #probesTold = new Map<string, string>()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /**
   * Looks anew at what there is. To be called before the others.
   * @returns whether the layout is another one than at the last look
   */
  look(): boolean {
    const groups: GroupLayout[] = []
    const fleet = this.#facts.fleet()
    const runtime = this.#facts.runtime()
    this.#shown = Array.from(this.#facts.upstreams(), (facts) => {
      const { layout, shown } = lookAt(facts, fleet, runtime)
      groups.push(layout)
      return shown
    })
    const { version, startedAt } = this.#facts
    const text = JSON.stringify({ version, page: this.#page, startedAt, groups })
    if (text === this.#layout) return false
    this.#layout = text
    this.#number += 1
    this.#probesTold = new Map()
    return true
  }

  /** A `Layout` as JSON, as the others are what they say. */
  get layout(): string {
    return `{"layout":${this.#number},"words":${wordsText},${this.#layout.slice(1)}`
  }

  get state(): string {
    const now = this.#facts.clock.now()
    const fleet = this.#facts.fleet()
    const names = this.#names()
    return JSON.stringify({
      layout: this.#number,
      at: Math.round(this.#facts.clock.wall()),
      program: programState(this.#facts),
      groups: this.#shown.map(({ facts, peers, budgets }) => ({
        ...groupState(facts, peers, budgets, fleet, now),
        ...waysState(facts, names, now),
      })),
    })
  }

  #names(): ReadonlyMap<string, NameFacts> {
    const known = shownResolvers(this.#facts.resolvers()).flatMap(({ names }) => names)
    return new Map(known.map((about) => [nameText(about), about]))
  }

  /**
   * What probes have found, a row each: places of the group, of the peer and of the probe, and then `probeColumns`.
   * @param all whether of every probe, and not only where there is news since the last time
   * @returns undefined where there is nothing to tell
   */
  probes(all: boolean): string | undefined {
    const { clock } = this.#facts
    const offset = clock.wall()
    const told = all ? new Map<string, string>() : this.#probesTold
    const rows: unknown[] = []
    for (const [g, { probed, probes }] of this.#shown.entries()) {
      for (const [p, abouts] of probed.entries()) {
        for (const about of abouts) {
          const key = `${g} ${p} ${probes.indexOf(about.probe)}`
          const { last, standing, leavesMs } = about
          const mark = `${last?.at} ${last?.passed} ${standing.fails} ${standing.passes} ${leavesMs > 0}`
          if (told.get(key) === mark) continue
          told.set(key, mark)
          rows.push([g, p, probes.indexOf(about.probe), ...probeRow(about, offset)])
        }
      }
    }
    return rows.length === 0 ? undefined : JSON.stringify({ layout: this.#number, rows })
  }
}

const wordsText = JSON.stringify(words)

function programState(facts: Facts) {
  const { accepted, dropped, lost, active, idle } = facts.connections()
  const { running, replaced } = facts.threads()
  const last = facts.lastReload()
  return {
    ready: facts.ready(),
    draining: facts.draining(),
    unready: unreadiness(facts),
    generation: facts.generation(),
    loadedAt: Math.round(facts.loadedAt()),
    reload: last && {
      ok: last.ok,
      at: Math.round(last.at),
      error: last.ok ? undefined : last.error.slice(0, 2000),
    },
    threads: [running, replaced],
    connections: [accepted, dropped, active, idle, lost],
    fleet: fleetState(facts.fleet()),
  }
}

function fleetState(fleet: FleetFacts | undefined) {
  if (fleet === undefined) return undefined
  const { group, name, id, servers, up, since, error, refused, silence, required, interval, ttl } = fleet
  const { exchanges, failures, losses, roundTripMs } = fleet
  return {
    ...{ group, name, id, servers, up, since, refused, required, interval, ttl, exchanges, failures, losses },
    error: error?.slice(0, 500),
    silence: silence && Math.round(silence),
    roundTripMs: roundTripMs && rounded(roundTripMs),
  }
}
