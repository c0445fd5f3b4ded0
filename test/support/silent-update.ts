import { leaving } from '../../feedback/fleet/gather.ts'
import type { Update } from '../../feedback/fleet/told.ts'

/** What an instance tells of a peer on which nothing has happened. */
export const silent: Update = { ...leaving, leaves: false }
