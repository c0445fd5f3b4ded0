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
