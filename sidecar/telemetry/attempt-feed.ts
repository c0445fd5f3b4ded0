import type { Call } from '../../feedback/call.ts'
import { isTrouble, type RecentAttempt, type RecentBatch, RecentList } from '../../feedback/feed.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { DenialReason } from '../../feedback/reasons.ts'
import { onAttempt } from './channels.ts'
import { escapeText } from './log-format.ts'

/** How often a batch goes, milliseconds, and how many attempts it lists at most: some fifty a second. */
const everyMs = 250
const most = 12
/** Clients choose how long paths and methods are, peers what a detail says. */
const longestText = 200
const longestMethod = 20

/**
 * Gathers the attempts of this thread for people who watch, and hands a batch over now and then. Nothing is done while
 * nobody watches.
 */
export class AttemptFeed {
  #stop: (() => void) | undefined

  /**
   * Begins, or goes on with another listener.
   * @param hear undefined: stops
   */
  watch(hear: ((batch: RecentBatch) => void) | undefined): void {
    this.#stop?.()
    this.#stop = hear && gather(hear)
  }
}

function gather(hear: (batch: RecentBatch) => void): () => void {
  const list = new RecentList(most)
  const ignore = onAttempt((call, attempt) => list.add(isTrouble(attempt), () => recent(call, attempt)))
  const timer = setInterval(() => {
    if (!list.empty) hear(list.take())
  }, everyMs)
  timer.unref()
  return () => {
    ignore()
    clearInterval(timer)
  }
}

/** What people may see of an attempt. A query may carry secrets, so it is left out. */
export function recent(call: Call, attempt: Attempt, at = Date.now()): RecentAttempt {
  return {
    at,
    upstream: attempt.upstream.name,
    peer: attempt.peer?.name,
    track: attempt.peer?.options.track,
    pick: attempt.pick,
    status: attempt.status,
    grpcStatus: attempt.grpcStatus,
    ending: attempt.ending,
    reason: attempt.reason,
    detail: attempt.detail === '' ? undefined : shown(attempt.detail, longestText),
    next: attempt.next,
    // Whoever sets it takes the word out of that list.
    denial: attempt.next ? undefined : (call.denial as DenialReason | undefined),
    headerMs: attempt.headerMs,
    ms: attempt.responseMs,
    reused: attempt.reused,
    retry: Math.max(0, call.attempts.lastIndexOf(attempt)),
    ...askedFor(call),
    traceId: attempt.traceId,
  }
}

function askedFor(call: Call): Pick<RecentAttempt, 'protocol' | 'method' | 'path'> {
  const { protocol, serverAddr, serverPort, target } = call
  if (protocol !== 'HTTP') {
    const host = serverAddr.includes(':') && serverPort !== '' ? `[${serverAddr}]` : serverAddr
    return { protocol, method: '', path: serverPort === '' ? host : `${host}:${serverPort}` }
  }
  const mark = target.indexOf('?')
  return {
    protocol,
    method: shown(call.originalMethod ?? call.method, longestMethod),
    path: shown(mark < 0 ? target : target.slice(0, mark), longestText),
  }
}

function shown(text: string, longest: number): string {
  return text.length > longest ? `${escapeText(text.slice(0, longest))}…` : escapeText(text)
}
