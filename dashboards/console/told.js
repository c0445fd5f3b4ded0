/*
 * The shapes of what the program tells; sidecar/admin/live-layout.ts and live-numbers.ts say what is in them.
 */

/**
 * @typedef {object} PeerLayout
 * @property {string} key
 * @property {string} name
 * @property {string} server
 * @property {string} track
 * @property {number} weight
 * @property {number} maxFails
 * @property {number} failTimeout
 * @property {number} slowStart
 * @property {number} maxConns
 * @property {'down' | 'drain'} [order]
 * @property {string} [line]
 * @property {string[]} [changed]
 * @property {boolean} [backup]
 * @property {boolean} [retired]
 */

/**
 * @typedef {object} ProbeLayout
 * @property {string} name
 * @property {string} type
 * @property {string} location
 * @property {string} mode
 * @property {number} interval
 * @property {boolean} essential
 * @property {number} fails
 * @property {number} passes
 */

/**
 * @typedef {object} ChangeLayout
 * @property {string} kind
 * @property {string} target
 * @property {boolean} whole
 * @property {string | number} [value]
 * @property {string | number} [file]
 * @property {number} at
 * @property {string} by
 */

/**
 * @typedef {object} GroupLayout
 * @property {string} name
 * @property {'http' | 'stream'} kind
 * @property {string} method
 * @property {boolean} single
 * @property {{ percents: [string, number][], key?: string, variable?: string }} [split]
 * @property {string} [shadow]
 * @property {string[]} [roster]
 * @property {{ ratio: number, min: number, window: number, locations: string[] }[]} budgets
 * @property {string[]} tracks
 * @property {ProbeLayout[]} probes
 * @property {PeerLayout[]} peers
 * @property {boolean} open
 * @property {ChangeLayout[]} [changes]
 * @property {{ number: number, timeout: number }} [queue]
 * @property {{ mode: 'cookie' | 'route' | 'learn', strict: boolean, zone?: string, capacity?: number, timeout?: number }} [sticky]
 * @property {{ after?: number }} [backupSwitch]
 * @property {string[]} [names]
 */

/**
 * @typedef {object} Layout
 * @property {number} layout
 * @property {string} version
 * @property {string} page
 * @property {number} startedAt
 * @property {Record<'peer' | 'track' | 'probe' | 'states' | 'exclusions' | 'reasons' | 'denials', string[]> & Record<'buckets' | 'sessionBuckets', number[]>} words
 * @property {GroupLayout[]} groups
 */

/**
 * @typedef {object} FleetState
 * @property {string} group
 * @property {string} name
 * @property {string} id
 * @property {string[]} servers
 * @property {boolean} up
 * @property {number} since
 * @property {string} [error]
 * @property {boolean} refused
 * @property {boolean} required
 * @property {number} interval
 * @property {number} ttl
 * @property {number} exchanges
 * @property {number} failures
 * @property {number} losses
 * @property {number} [silence]
 * @property {number} [roundTripMs]
 */

/**
 * @typedef {object} ProgramState
 * @property {boolean} ready
 * @property {boolean} draining
 * @property {string} [unready]
 * @property {number} generation
 * @property {number} loadedAt
 * @property {{ ok: boolean, at: number, error?: string }} [reload]
 * @property {[number, number]} threads
 * @property {[number, number, number, number, number]} connections
 * @property {FleetState} [fleet]
 */

/** @typedef {(number | null | number[])[]} Row */

/**
 * @typedef {object} GroupState
 * @property {number} requests
 * @property {number} attempts
 * @property {number} retries
 * @property {number} waiting
 * @property {number} idle
 * @property {number[]} denials
 * @property {Row[]} tracks
 * @property {[number, number, number][]} budgets
 * @property {[number, number | null, number]} [fleet]
 * @property {[number, number, number, number]} [shadow]
 * @property {[number, number, number, number, number, number]} [queue]
 * @property {[number, number, number, number | null, number | null]} [sticky]
 * @property {[number, number | null, number, number | null]} [list]
 * @property {[number, number | null, string | null][]} [names]
 * @property {Row[]} peers
 */

/**
 * @typedef {object} State
 * @property {number} layout
 * @property {number} at
 * @property {ProgramState} program
 * @property {GroupState[]} groups
 */

/**
 * @typedef {object} Probing what a probe found when it last asked a peer
 * @property {ProbeLayout} probe
 * @property {boolean | undefined} passed undefined: it said nothing, or did not ask yet
 * @property {string} detail
 * @property {number | undefined} at
 * @property {number | undefined} tookMs
 * @property {number} fails
 * @property {number} passes
 * @property {number} nextAt
 * @property {boolean} shared
 * @property {string | undefined} by
 * @property {number} leavesMs
 */

/**
 * @typedef {object} RecentAttempt
 * @property {number} at
 * @property {string} upstream
 * @property {string} [peer]
 * @property {string} [track]
 * @property {string} pick
 * @property {number} [status]
 * @property {number} [grpcStatus]
 * @property {string} [ending]
 * @property {string} [reason]
 * @property {string} [detail]
 * @property {boolean} next
 * @property {string} [denial]
 * @property {number} [headerMs]
 * @property {number} [ms]
 * @property {boolean} reused
 * @property {number} retry
 * @property {'HTTP' | 'TCP' | 'UDP'} protocol
 * @property {string} method
 * @property {string} path
 * @property {string} traceId
 */

/** @typedef {{ attempts: RecentAttempt[], more: number, moreFailed: number }} RecentBatch */

export {}
