/**
 * The numbers kept of each peer, one column of the zone each. Times that end in `At` are monotonic
 * milliseconds unless they say wall clock.
 */
export const peerFields = [
  'tenant', // serial number of the peer whose slot this is; 0: of none any more
  // Passive health and bookkeeping of the choice.
  'conns', // requests in progress: what least_conn, max_conns and least_time count
  'selected', // attempts begun, ever
  'selectedWallAt', // wall clock milliseconds of the last one; 0 never
  'fails', // failures that max_fails compares
  'checkedAt', // when it was last chosen or failed
  'recoverAt', // success of a choice at or after this moment clears `fails`
  'slowAt', // start of the slow_start ramp; 0 when not ramping
  'succeeded', // attempts that ended plainly well, without a reason, ever
  'failsTotal', // failed attempts, ever
  'unavailable', // how often `fails` reached max_fails
  'reuses', // attempts on a kept connection, ever
  'connects', // connections opened for attempts, ever, and the time that took, ms
  'connectMs',
  'downtimeMs', // spans of unavailability that have ended, summed
  'downAt', // since when it is unavailable; 0 when it is not
  'downstartWallAt', // the same by the wall clock
  // What probes and their agents say; see probe-health.ts.
  'barred', // why it gets no request, an index in `bars`; 0 it may have some
  'probeHealth', // 0 healthy, 1 checking, 2 unhealthy: what all its probes together say
  'agentState', // 0 ready, 1 drain, 2 maint, and 3 more for down: what an agent on the peer has asked for
  'weightFactor', // part of its weight that an agent leaves it; 1 unless told
  'connsLimit', // limit of requests in progress that an agent has set; 0 none, `max_conns` holds
  'probes', // probes that have ended, ever
  'probeFails', // probes that did not pass, ever
  'probeWallAt', // wall clock milliseconds of the last one; 0 never
  'probeMs', // how long the last one of this instance's own took
  'unhealthy', // how often probes took it out
  'probeDownAt', // since when probes keep it out; 0 they do not
  // Turns of smooth weighted round robin.
  'currentWeight',
  'effectiveWeight',
  // What least_time keeps (see learn.ts).
  'avg', // moving average of successful answers, ms; 0 is none yet
  'ok', // moving average of success (1) and failure (0)
  'answeredAt', // last answer; 0 is never
  'answersMark', // the group's count of answers at that moment
  'waiting', // attempts that still wait for the measured event
  'startSum', // sum of their starts
  // What `feedback` keeps (see report.ts).
  'report', // moving average of the reported values; meaningless while `reportAt` is 0
  'reportAt', // when the last value was taken; 0 never
  'reportSince', // from when on it counts: the first value, or some time after the first one that followed a gap
  'reportMark', // the group's count of answers when the last value was taken
  'ignoredLast', // why the last value that was not taken was not: its place in `signalReasons`, from 1; 0 none
  'valueCount', // values taken, ever, and their sum: what this instance has to tell the fleet of them
  'valueSum',
  // What is counted for the fleet, and what it says; see fleet/.
  'answers', // answers that said success or failure, ever, seen by this instance itself
  'goodAnswers', // the successes among them
  'goodAt', // when an attempt last ended plainly well; 0 never
  'connsPeak', // most requests in progress at once since the fleet last looked
  'lease', // 1 more than the requests in progress that the fleet allows this instance; 0: it does not say
  'stuckCount', // attempts of other instances that are stuck at the peer now
  'stuckStart', // sum of their starts
  // A method's own cache over the columns (least_time plain keeps a tree of shares in them).
  'share',
  'tree',
  // For people and the status tree.
  'connectTime', // moving average of times to connect, ms, of `stream` groups; 0 is no data
  'headerTime', // moving average of times to the header, or to the first byte of a session, ms; 0 is no data
  'responseTime', // moving average of times to the last byte of complete answers, ms; 0 is no data
  'bytesSent',
  'bytesReceived',
  'explored', // picks made by exploration or by the floor
  'unmeasured', // picks made while there was no average
] as const

export type PeerField = (typeof peerFields)[number]

/** Upper bounds of the latency histograms in milliseconds; one more bucket takes what lies above the last. */
export const latencyBucketsMs = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000,
] as const

/** The same of how long sessions of `stream` last: as many, since they are kept in the same columns. */
export const sessionBucketsMs = [
  10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 14_400_000,
  86_400_000,
] as const

/** The numbers kept of each group. */
export const groupFields = [
  'tenants', // peers that have ever had a slot
  'requests', // requests that asked for a peer
  'answers', // attempts that taught something: the clock of forgetting
  'lastAverage', // mean of the known averages, ms; under `feedback` of the shares that the reported values stand for
  'median', // median of the known averages, ms, or of the reported values; refreshed at most every 100 ms
  'medianAt',
  'reporting', // peers whose reported value counted then
  'signal', // what the averages are of; see signal.ts. 0: nothing has been learnt yet
  'tries', // attempts begun, first ones and retries
  'retries', // attempts after the first of a request
  'retriesWaiting', // retries that wait for their back-off now
  'keepalive', // idle pooled connections now
  // Of the group's queue; see waiting.ts.
  'queueWaiting', // requests that wait in it now
  'queued', // requests that have entered it, ever
  'queueDropped', // those of them whose clients left
  'queueTimedout', // those of them that waited too long
  'queueOverflows', // requests that found it full
  'queueMs', // how long all those have waited that wait no more
  'mostFactor', // greatest `weightFactor` of the peers; 0 where all are 1
  'stuckPeers', // peers at which attempts of other instances are stuck
  // Attempts of groups with `sticky`, by what became of the session: see `$upstream_sticky_status`.
  'stickyNew',
  'stickyHit',
  'stickyMiss',
  // What `backup_switch` keeps; see backup-switch.ts.
  'activeList', // where requests go first: 0 primaries, 1 backups
  'switches', // how often that changed, ever
  'switchedWallAt', // wall clock milliseconds of the last change; 0 never
  'backSince', // since when the time runs after which the primaries are tried again
  // In the zone of a shadow method; see shadow.ts.
  'shadowPicks', // picks that both methods made, between peers whose times are known
  'shadowSame', // those of them that fell on one peer
  'pickedMs', // sums over them of the average times of the peers that were picked, and that would have been
  'shadowMs',
] as const

export type GroupField = (typeof groupFields)[number]

/** Where each number of a group lies in the zone's `group` array. */
export const groupIndex = Object.fromEntries(groupFields.map((field, index) => [field, index])) as {
  // The list of fields and the type's keys are the same list.
  readonly [F in GroupField]: number
}
