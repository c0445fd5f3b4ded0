import type { Facts } from './facts.ts'
import { fleetNumbers } from './fleet-samples.ts'
import { unreadiness } from './health.ts'

/*
 * Where the numbers of the program in the table of metrics (feedback/metrics-table.ts) come from: by name,
 * how they are read. Name, type, help and labels are the table's.
 */

/** Of the program as a whole; undefined leaves the sample out. */
export const programNumbers: ReadonlyMap<string, (facts: Facts) => number | undefined> = new Map([
  ['evenkeel_connections_accepted_total', (facts: Facts) => facts.connections().accepted],
  ['evenkeel_connections_dropped_total', (facts: Facts) => facts.connections().dropped],
  ['evenkeel_datagrams_dropped_total', (facts: Facts) => facts.connections().lost],
  ['evenkeel_connections_active', (facts: Facts) => facts.connections().active],
  ['evenkeel_connections_idle', (facts: Facts) => facts.connections().idle],
  ['evenkeel_threads', (facts: Facts) => facts.threads().running],
  ['evenkeel_threads_replaced_total', (facts: Facts) => facts.threads().replaced],
  ['evenkeel_ready', (facts: Facts) => (unreadiness(facts) === undefined ? 1 : 0)],
  ['evenkeel_config_generation', (facts: Facts) => facts.generation()],
  ['evenkeel_config_loaded_timestamp_seconds', (facts: Facts) => facts.loadedAt() / 1000],
  ['evenkeel_config_last_reload_successful', (facts: Facts) => (facts.lastReload()?.ok === false ? 0 : 1)],
  ...Array.from(fleetNumbers, ([name, read]): [string, (facts: Facts) => number | undefined] => [
    name,
    (facts) => {
      const fleet = facts.fleet()
      return fleet && read(fleet)
    },
  ]),
])
