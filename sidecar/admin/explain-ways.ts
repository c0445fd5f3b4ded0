import { onBackups } from '../../feedback/backup-switch.ts'
import { exclusion } from '../../feedback/health.ts'
import { printable } from './explain-probes.ts'
import type { UpstreamFacts } from './facts.ts'
import { leftUntilReturn } from './status-groups.ts'
import { rounded } from './tree.ts'

/*
 * What has a say in where a request goes before the method has, or after it has found nobody: the session that it is of,
 * the list that comes first, and the queue. Times in milliseconds.
 */

export interface ExplainedWays {
  /** Undefined where sessions are not bound to peers. */
  readonly sticky: StickyExplanation | undefined
  /** Undefined where the primaries come first, whatever happened. */
  readonly backup_switch: SwitchExplanation | undefined
  /** Undefined where nobody waits for a peer. */
  readonly queue: QueueExplanation | undefined
}

/** @param session what is asked about; undefined: nothing is */
export function explainWays(group: UpstreamFacts, now: number, session: string | undefined): ExplainedWays {
  return {
    sticky: explainSticky(group, now, session),
    backup_switch: explainSwitch(group, now),
    queue: explainQueue(group),
  }
}

/** The same for people, a line each. */
export function* waysLines({ sticky, backup_switch, queue }: ExplainedWays): Generator<string> {
  if (sticky) yield* stickyLines(sticky)
  if (backup_switch) yield switchLine(backup_switch)
  if (queue) yield queueLine(queue)
}

export interface StickyExplanation {
  readonly mode: 'cookie' | 'route' | 'learn'
  readonly strict: boolean
  /** Picks so far, by what became of the session. */
  readonly new: number
  readonly hit: number
  readonly miss: number
  /** Learnt sessions that are known, and how many may be; undefined where none are learnt. */
  readonly known: number | undefined
  readonly capacity: number | undefined
  /** Of a session that was asked about. */
  readonly session: SessionExplanation | undefined
}

export interface SessionExplanation {
  /** As asked: an id of a session where these are learnt, otherwise what its cookie, or variable, says. */
  readonly session: string
  /** Peers that it names, each with what keeps it from the session now; undefined: it cannot be told. */
  readonly bound: readonly { readonly peer: string; readonly excluded: string | undefined }[] | undefined
  /** Which of them it goes to; undefined: to none of them. */
  readonly goes: string | undefined
}

/** @param session what is asked about; undefined: nothing is */
function explainSticky(
  { upstream, sticky }: UpstreamFacts,
  now: number,
  session: string | undefined,
): StickyExplanation | undefined {
  if (sticky === undefined) return undefined
  const { mode, strict } = sticky
  const { zone, sessions } = upstream
  const bound = session === undefined ? undefined : sticky.bound(session, now)
  const peers = bound?.map((peer) => ({
    peer: peer.name,
    excluded: exclusion(peer, upstream.isAlone(peer), now, true),
  }))
  return {
    mode,
    strict,
    new: zone.get('stickyNew'),
    hit: zone.get('stickyHit'),
    miss: zone.get('stickyMiss'),
    known: sessions?.table.size,
    capacity: sessions?.table.slots,
    session:
      session === undefined
        ? undefined
        : { session, bound: peers, goes: peers?.find(({ excluded }) => excluded === undefined)?.peer },
  }
}

/** The same for people, a line each. */
function* stickyLines(about: StickyExplanation): Generator<string> {
  const { mode, strict, known, capacity, session } = about
  const how = mode === 'learn' ? `learnt, ${known} of at most ${capacity} known` : `by ${mode}`
  yield `sessions: ${how}; ${about.new} picks of new ones, ${about.hit} hits, ${about.miss} misses`
  if (session === undefined) return
  const elsewhere = strict ? 'refused' : 'as the method has it'
  const { bound, goes } = session
  let what: string
  if (bound === undefined) what = 'cannot be told, since the secret depends on the request'
  else if (goes !== undefined) what = `goes to ${goes}`
  else if (bound.length === 0)
    what = mode === 'learn' ? 'is not known: as the method has it' : `names nobody: ${elsewhere}`
  else what = `${bound.map(({ peer, excluded }) => `${peer} is ${excluded}`).join(', ')}: ${elsewhere}`
  yield `  ${printable(session.session)}: ${what}`
}

export interface SwitchExplanation {
  /** Where requests go first. */
  readonly list: 'primaries' | 'backups'
  /** Until a request tries the primaries again; undefined: none does before the backups have nobody, or it need not. */
  readonly returns: number | undefined
  readonly switches: number
}

function explainSwitch(
  { upstream: { zone }, backupSwitch }: UpstreamFacts,
  now: number,
): SwitchExplanation | undefined {
  if (backupSwitch === undefined) return undefined
  const { after } = backupSwitch
  const away = onBackups(zone)
  return {
    list: away ? 'backups' : 'primaries',
    returns:
      away && after !== undefined
        ? Math.round(leftUntilReturn(zone.get('backSince'), after, now))
        : undefined,
    switches: zone.get('switches'),
  }
}

function switchLine({ list, returns, switches }: SwitchExplanation): string {
  const count = `${switches} ${switches === 1 ? 'switch' : 'switches'} so far`
  if (list === 'primaries') return `lists: the primaries first; ${count}`
  if (returns === undefined) return `lists: the backups first, until nobody is ready there; ${count}`
  const next = returns === 0 ? 'with the next request' : `in ${Math.ceil(returns / 1000)} s`
  return `lists: the backups first, the primaries are tried again ${next}; ${count}`
}

export interface QueueExplanation {
  readonly waiting: number
  /** Most that wait in each thread, and for how long. */
  readonly limit: number
  readonly timeout: number
  /** Since the start. */
  readonly queued: number
  readonly dropped: number
  readonly timedout: number
  readonly overflows: number
  /** How long those waited, on average, that wait no more; undefined before the first. */
  readonly mean: number | undefined
}

function explainQueue({ upstream: { zone }, queue }: UpstreamFacts): QueueExplanation | undefined {
  if (queue === undefined) return undefined
  const [queued, waiting] = [zone.get('queued'), zone.get('queueWaiting')]
  const over = queued - waiting
  return {
    waiting,
    limit: queue.number,
    timeout: queue.timeout,
    queued,
    dropped: zone.get('queueDropped'),
    timedout: zone.get('queueTimedout'),
    overflows: zone.get('queueOverflows'),
    mean: over > 0 ? rounded(zone.get('queueMs') / over) : undefined,
  }
}

function queueLine(about: QueueExplanation): string {
  const { waiting, limit, timeout, queued, dropped, timedout, overflows, mean } = about
  const time = mean === undefined ? '' : `, ${mean} ms on average`
  const most = `at most ${limit} in each thread, for ${timeout / 1000} s`
  const ends = `${dropped} left, ${timedout} waited too long, ${overflows} found it full`
  return `queue: ${waiting} waiting now, ${most}; ${queued} have waited${time}, ${ends}`
}
