import type { Row } from './board.ts'
import { lines } from './panels.ts'
import { avg, max, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'

/** What all instances see of a peer; each of them tells the same, so the greatest is what the last one heard. */
export const fleetRow: Row = {
  title: 'What the fleet says of the peers',
  panels: [
    lines({
      title: 'In flight from all instances',
      about: 'Requests in progress at each peer from all instances. Empty without a fleet.',
      span: 6,
      unit: 'short',
      queries: [[max(ofPeer, chosen('evenkeel_peer_fleet_in_flight')), name]],
      min: 0,
    }),
    lines({
      title: 'Average over the instances',
      about: 'What instances have as averages, weighted by what each has seen. A newcomer starts with it.',
      span: 6,
      unit: 's',
      queries: [[avg(ofPeer, chosen('evenkeel_peer_fleet_average_seconds')), name]],
      min: 0,
    }),
    lines({
      title: 'Stuck elsewhere',
      about:
        'Attempts of other instances that have waited ten times as long as the peer usually takes, and the time that they have waited, added up.',
      span: 6,
      unit: 'short',
      queries: [
        [max(ofPeer, chosen('evenkeel_peer_fleet_stuck')), name],
        [max(ofPeer, chosen('evenkeel_peer_fleet_stuck_age_seconds')), `${name} seconds`],
      ],
      min: 0,
    }),
    lines({
      title: 'Leases',
      about:
        'Requests in progress that the instances may have of a `max_conns` of the fleet, all leases together. Empty where no limit is the fleet’s.',
      span: 6,
      unit: 'short',
      queries: [[sum(ofPeer, chosen('evenkeel_peer_fleet_lease')), name]],
      min: 0,
    }),
  ],
}

/** A second method that only says what it would have picked. */
export const shadowRow: readonly Row[] = []
