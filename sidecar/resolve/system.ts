import { readFileSync, statSync } from 'node:fs'
import { readHosts } from './hosts.ts'
import { type ResolvConf, readResolvConf } from './resolv-conf.ts'

/** A file whose text is read again when it has changed. */
class Watched<T> {
  readonly #path: string
  readonly #read: (text: string) => T
  #stamp = ''
  #value: T

  constructor(path: string, read: (text: string) => T) {
    this.#path = path
    this.#read = read
    this.#value = read('')
  }

  /** A file that cannot be read is as good as empty. */
  get value(): T {
    let stamp = ''
    try {
      const { mtimeMs, size, ino } = statSync(this.#path)
      stamp = `${mtimeMs} ${size} ${ino}`
      if (stamp !== this.#stamp) this.#value = this.#read(readFileSync(this.#path, 'utf8'))
    } catch {
      if (this.#stamp !== '') this.#value = this.#read('')
      stamp = ''
    }
    this.#stamp = stamp
    return this.#value
  }
}

/** What the system says of names: its name servers, and names that it knows itself. */
export interface System {
  /** As it is now. */
  conf(): ResolvConf
  hosts(): ReadonlyMap<string, readonly string[]>
}

/** The files that the C library reads; the environment may name others, for a container or a test. */
export function systemFiles(env: NodeJS.ProcessEnv = process.env): System {
  const conf = new Watched(env['EVENKEEL_RESOLV_CONF'] ?? '/etc/resolv.conf', readResolvConf)
  const hosts = new Watched(env['EVENKEEL_HOSTS'] ?? '/etc/hosts', readHosts)
  return { conf: () => conf.value, hosts: () => hosts.value }
}
