import type { Update } from '../../feedback/fleet/told.ts'

/** What an instance tells of a peer on which nothing has happened. */
export const silent: Update = {
  leaves: false,
  answers: 0,
  good: 0,
  ejections: 0,
  values: 0,
  valueSum: 0,
  valueAge: 0,
  stuck: 0,
  stuckAge: 0,
  weight: 0,
  average: 0,
  conns: 0,
  limit: 0,
  have: 0,
  want: 0,
  need: 0,
}
