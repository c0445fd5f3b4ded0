import { grpcStatusNames, isGrpcFailure } from '../feedback/grpc-status.ts'
import type { Row } from './board.ts'
import { grpcSeries } from './colours.ts'
import { lines } from './panels.ts'
import { rate, ratio, sum } from './promql.ts'
import { chosen } from './scope.ts'

const calls = 'evenkeel_peer_grpc_responses_total'
const ofPeer = ['upstream', 'peer'] as const
/** The statuses that say that a peer did not do its work. */
const failures = new RegExp(grpcStatusNames.filter((_, status) => isGrpcFailure(status)).join('|'))

/** Calls of gRPC, whose status of HTTP is 200 however they end. Empty where there are none. */
export const grpcRow: Row = {
  title: 'Calls of gRPC',
  panels: [
    lines({
      title: 'Calls by status',
      about:
        'How peers ended their calls, a second, those of retried attempts too. Whether a status counts against the peer is up to `grpc_next_upstream`. Empty without `grpc_pass`.',
      span: 12,
      unit: 'ops',
      stacked: true,
      colours: grpcSeries,
      queries: [[sum(['code'], rate(chosen(calls))), '{{code}}']],
      min: 0,
    }),
    lines({
      title: 'Failed calls by peer',
      about:
        'Part of the calls that ended with a status that says something of the peer: UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE or DATA_LOSS. Calls that broke off without a status are in neither number.',
      span: 12,
      unit: 'percentunit',
      queries: [
        [
          ratio(sum(ofPeer, rate(chosen(calls, { code: failures }))), sum(ofPeer, rate(chosen(calls)))),
          '{{upstream}} {{peer}}',
        ],
      ],
      min: 0,
      steps: ['transparent', [0.1, 'red']],
    }),
  ],
}
