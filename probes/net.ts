import type { Recurring } from './due-queue.ts'

/*
 * When an instance asks by itself what instances ask together. All counts from the last result, so that a connection
 * that comes and goes neither keeps anybody from asking nor hurries them. Moments are monotonic milliseconds, dice
 * uniform in [0, 1).
 */

/** After a result, whoever asked: the schedule has its turn first, and instances do not come up in step. */
export function afterResult(now: number, ago: number, interval: number, dice: number): number {
  return Math.max(now, now - ago + interval * (1.5 + dice / 2))
}

/**
 * The same of one that leaves the peer to the others: they come first here, too. A result that comes then is still
 * trusted to go on with the streak.
 */
export function afterOthers(now: number, ago: number, interval: number, dice: number): number {
  return afterResult(now, ago, interval, dice) + 0.75 * interval
}

/** Within which time after another's failure this instance asks, too: one of them does, and they are not in step. */
export function secondOpinion(now: number, interval: number, dice: number): number {
  return now + dice * Math.min(interval, 500)
}

/** When Redis is away: all instances are to ask by themselves, and not in step. */
export function whenAway({ dueAt, interval }: Recurring, lastAt: number, now: number, dice: number): number {
  const next = lastAt + interval * (1 + dice)
  return Math.min(dueAt, next > now ? next : now + dice * interval)
}

/** When it is back: the schedules have time to come up. */
export function whenBack({ dueAt, interval }: Recurring, lastAt: number, now: number, dice: number): number {
  const next = lastAt + interval * (1.5 + dice / 2)
  return next > now ? next : dueAt
}
