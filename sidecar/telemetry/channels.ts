import { channel } from 'node:diagnostics_channel'
import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'

/** What `evenkeel:attempt` tells: an attempt that has ended, or that nobody was eligible, and its request. */
export interface AttemptEvent {
  readonly call: Call
  readonly attempt: Attempt
}

/** Every request once, when its record is complete. The payload is its `Call`. */
export const requestChannel = channel('evenkeel:request')

/** Every attempt once, when it has ended. The payload is an `AttemptEvent`. */
export const attemptChannel = channel('evenkeel:attempt')

/** Costs a comparison while nobody listens. */
export function publishRequest(call: Call): void {
  if (requestChannel.hasSubscribers) requestChannel.publish(call)
}

/** Costs a comparison, and no object, while nobody listens. */
export function publishAttempt(call: Call, attempt: Attempt): void {
  if (!attemptChannel.hasSubscribers) return
  const event: AttemptEvent = { call, attempt }
  attemptChannel.publish(event)
}

/**
 * Listens to ended attempts.
 * @returns stops listening
 */
export function onAttempt(listener: (call: Call, attempt: Attempt) => void): () => void {
  const hear = (message: unknown) => {
    // The channel is published by `publishAttempt` alone.
    const { call, attempt } = message as AttemptEvent
    listener(call, attempt)
  }
  attemptChannel.subscribe(hear)
  return () => attemptChannel.unsubscribe(hear)
}

/**
 * Listens to finished requests.
 * @returns stops listening
 */
export function onRequest(listener: (call: Call) => void): () => void {
  // The channel is published by `publishRequest` alone.
  const hear = (message: unknown) => listener(message as Call)
  requestChannel.subscribe(hear)
  return () => requestChannel.unsubscribe(hear)
}
