import { latencyBucketsMs, sessionBucketsMs } from '../../feedback/fields.ts'

/** Upper bounds of the histograms in seconds. */
export const latencyBounds: readonly number[] = latencyBucketsMs.map((ms) => ms / 1000)

/** The same of how long sessions of `stream` last. */
export const sessionBounds: readonly number[] = sessionBucketsMs.map((ms) => ms / 1000)
