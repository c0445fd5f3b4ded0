import type { Alert } from './alert.ts'
import { groupAlerts, peerAlerts } from './alerts-groups.ts'
import { processAlerts } from './alerts-instances.ts'
import { trackAlerts } from './alerts-tracks.ts'

/**
 * What is worth waking somebody for, or a look in the morning. Thresholds are for services with some requests a second;
 * docs/dashboards.md says which to change first.
 */
export const alerts: readonly Alert[] = [...groupAlerts, ...peerAlerts, ...trackAlerts, ...processAlerts]
