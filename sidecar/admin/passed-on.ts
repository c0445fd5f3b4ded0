import { grpcRetryWord, grpcStatusNames, isGrpcFailure } from '../../feedback/grpc-status.ts'
import type { Peer } from '../../feedback/peer.ts'
import { attemptReasons } from '../../feedback/reasons.ts'

/*
 * Answers that say that a peer did not do its work, and that were passed on all the same. One that is listed as a failure
 * has its reason; these have none.
 */

const serverErrors = attemptReasons.flatMap((reason, r) => (/^http_5/.test(reason) ? [r] : []))

/** Answers 5xx. */
export function passedErrors({ zone, index }: Peer): number {
  let count = 0
  for (let code = 500; code <= 599; code++) count += zone.statuses[code - 100]![index]!
  for (const r of serverErrors) count -= zone.reasons[r]![index]!
  return Math.max(0, count)
}

const failures = grpcStatusNames.flatMap((_, status) => (isGrpcFailure(status) ? [status] : []))
const failureWords: ReadonlySet<string | undefined> = new Set(failures.map(grpcRetryWord))
const callErrors = attemptReasons.flatMap((reason, r) => (failureWords.has(reason) ? [r] : []))

/** Calls of gRPC that ended with a failure. */
export function passedCalls({ zone, index }: Peer): number {
  let count = 0
  for (const status of failures) count += zone.grpcStatuses[status]![index]!
  for (const r of callErrors) count -= zone.reasons[r]![index]!
  return Math.max(0, count)
}
