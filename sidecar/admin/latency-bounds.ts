import { latencyBucketsMs } from '../../feedback/fields.ts'

/** Upper bounds of the histograms in seconds. */
export const latencyBounds: readonly number[] = latencyBucketsMs.map((ms) => ms / 1000)
