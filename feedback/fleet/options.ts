/** What the `fleet` directive says, with its files read. Times in milliseconds. */
export interface FleetOptions {
  /** `redis://` or `rediss://`, one or more; with `sentinel` those of the sentinels, with `cluster` of some nodes. */
  readonly urls: readonly string[]
  /** Names the app: instances share with those of the same name. */
  readonly group: string
  /** This instance's name, for people. */
  readonly name: string
  /** What every key begins with. */
  readonly prefix: string
  /** How often instances tell each other. */
  readonly interval: number
  /** What an instance that falls silent has told counts for so long. */
  readonly ttl: number
  /** How long an answer may take. */
  readonly timeout: number
  /** Name of the master that the sentinels are asked for; undefined: there are none. */
  readonly sentinel: string | undefined
  readonly cluster: boolean
  /** Of an access list; a user in a URL holds over it. */
  readonly user: string | undefined
  readonly password: string | undefined
  /** PEM texts for `rediss://`. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** Whether the program counts as ready only while the fleet can be reached. */
  readonly required: boolean
}
