/** Where instances share what they see. What is absent is filled in at build; see fleet-options.ts. */
export interface FleetLine {
  /** At least one; all `redis://`, or all `rediss://`. They may hold passwords. */
  readonly urls: readonly string[]
  /** `default` where absent. */
  readonly group?: string
  readonly interval?: string
  /** At least three times `interval`. */
  readonly ttl?: string
  /** Host name and process id where absent. */
  readonly name?: string
  /** `evenkeel` where absent. */
  readonly prefix?: string
  /** Name of the master; the URLs are then those of sentinels. */
  readonly sentinel?: string
  readonly cluster?: true
  readonly user?: string
  /** A file relative to the prefix, as the three below. */
  readonly password_file?: string
  readonly ca?: string
  /** Stands together with `key`. */
  readonly cert?: string
  readonly key?: string
  readonly timeout?: string
  readonly required?: true
}
