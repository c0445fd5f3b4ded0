/** Names of the statuses that calls of gRPC end with, each at its number. */
export const grpcStatusNames = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const

export type GrpcStatusName = (typeof grpcStatusNames)[number]

/**
 * Statuses of gRPC that another peer may be asked after, by the words of `grpc_next_upstream`. All others say
 * something of the call, which every peer would say.
 */
export const grpcRetryStatuses = {
  grpc_cancelled: 1,
  grpc_unknown: 2,
  grpc_deadline_exceeded: 4,
  grpc_resource_exhausted: 8,
  grpc_aborted: 10,
  grpc_unimplemented: 12,
  grpc_internal: 13,
  grpc_unavailable: 14,
} as const

export type GrpcRetryWord = keyof typeof grpcRetryStatuses

const retryWords: ReadonlyMap<number, GrpcRetryWord> = new Map(
  Object.entries(grpcRetryStatuses).map(([word, status]) => [status, word as GrpcRetryWord]),
)

/** UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const peerFailures: ReadonlySet<number> = new Set([2, 4, 8, 13, 14, 15])

/** The word that lists a status in `grpc_next_upstream`; undefined where there is none. */
export function grpcRetryWord(status: number): GrpcRetryWord | undefined {
  return retryWords.get(status)
}

/** Whether a status says that the peer did not do its work, as a 500 would; others speak of the call. */
export function isGrpcFailure(status: number): boolean {
  return peerFailures.has(status)
}

/**
 * The status that an answer which is whole ended its call with. A call that ends without one is UNKNOWN, as clients take it.
 * @param end its trailers; its head where nothing else came
 * @param status of HTTP
 * @param head names and values in turn
 * @returns undefined where the answer is none of gRPC
 */
export function grpcEnding(
  end: readonly string[] | undefined,
  status: number | undefined,
  head: readonly string[] | undefined,
): number | undefined {
  return grpcStatusOf(end) ?? (status === 200 && speaksGrpc(head ?? []) ? 2 : undefined)
}

/** Not so gRPC-Web, which has its trailers in its body. */
function speaksGrpc(head: readonly string[]): boolean {
  for (let i = 0; i < head.length; i += 2) {
    if (head[i]!.length !== 12 || head[i]!.toLowerCase() !== 'content-type') continue
    return /^application\/grpc(?:$|[;+])/i.test(head[i + 1]!)
  }
  return false
}

/**
 * The status that a call ended with: 0 to 16. What is no number of the list is UNKNOWN, 2, as clients take it.
 * @param flat names and values in turn: the trailers, or the head where nothing else came
 * @returns undefined where there is none
 */
export function grpcStatusOf(flat: readonly string[] | undefined): number | undefined {
  if (flat === undefined) return undefined
  for (let i = 0; i < flat.length; i += 2) {
    if (flat[i]!.length !== 11 || flat[i]!.toLowerCase() !== 'grpc-status') continue
    const text = flat[i + 1]!
    const status = /^[0-9]{1,2}$/.test(text) ? Number(text) : 2
    return status <= 16 ? status : 2
  }
  return undefined
}
