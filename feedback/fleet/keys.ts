/** The keys of one group's state. One hash tag puts them all in one slot of a cluster. */
export interface GroupKeys {
  /** A hash: the epoch, the version, and a record of each peer and of each probe of a peer. */
  readonly state: string
  /** A sorted set: at which version each record of the hash was changed last. */
  readonly changed: string
  /** A sorted set: when each instance was heard last, milliseconds of the server's clock. */
  readonly members: string
  /** Begins the key of what one instance has told, with its id after it. */
  readonly told: string
  /** Begins the key of a minute's samples, with the minute after it; see sample-scripts.ts. */
  readonly samples: string
  /** Begins the keys of what `sticky learn` has learnt; see session-scripts.ts. */
  readonly sessions: string
}

/**
 * Of what lies under the keys: another one with every change of it. Programs that write it differently have a state each,
 * as while a new version is rolled out.
 */
const format = 1

/**
 * @param prefix as configured
 * @param group names the app
 * @param upstream the group of peers; nginx compares names without case
 */
export function groupKeys(prefix: string, group: string, upstream: string): GroupKeys {
  const tag = `${prefix}:{${clean(group)}/${clean(upstream.toLowerCase())}}:${format}`
  return {
    state: `${tag}:state`,
    changed: `${tag}:changed`,
    members: `${tag}:members`,
    told: `${tag}:told:`,
    samples: `${tag}:samples:`,
    sessions: `${tag}:sessions:`,
  }
}

/**
 * The two keys of one table of sessions.
 * @param zone the table's name
 */
export function sessionKeys({ sessions }: GroupKeys, zone: string): [all: string, changed: string] {
  const key = sessions + clean(zone)
  return [key, `${key}:changed`]
}

/** The first closing brace would end the hash tag, and an empty tag is none. */
function clean(name: string): string {
  return encodeURIComponent(name)
}
