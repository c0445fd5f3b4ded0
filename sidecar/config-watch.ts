import { existsSync, type FSWatcher, realpathSync, statSync, watch } from 'node:fs'
import { dirname } from 'node:path'

/** When to look, milliseconds. */
export interface Rhythm {
  /** Quiet time after a change before it is told: an editor or a mount writes in several steps. */
  readonly settle: number
  /** Between two looks where no event says that something changed (network mounts, exhausted inotify). */
  readonly poll: number
}

/**
 * Tells when one of some files changes, or the target of a symbolic link on the way to one: a mounted ConfigMap
 * swaps the link `..data` and leaves the file's own link untouched.
 */
export class ConfigWatch {
  readonly #changed: () => void
  readonly #rhythm: Rhythm
  #files: readonly string[] = []
  #watchers = new Map<string, FSWatcher>()
  #seen = ''
  #settling: NodeJS.Timeout | undefined
  #polling: NodeJS.Timeout | undefined

  constructor(changed: () => void, rhythm: Rhythm = { settle: 100, poll: 2000 }) {
    this.#changed = changed
    this.#rhythm = rhythm
  }

  /** Watches these files from now on; none ends it. Files that are watched already keep what is known of them. */
  watch(files: readonly string[]): void {
    const before = this.#files
    this.#files = files
    if (files.some((file) => !before.includes(file))) this.#seen = this.#state()
    this.#listen()
    if (files.length === 0) {
      clearTimeout(this.#settling)
      clearInterval(this.#polling)
      this.#polling = undefined
    } else {
      this.#polling ??= setInterval(() => this.#look(), this.#rhythm.poll).unref()
    }
  }

  /** The files are being read at this moment: changes until now need not be told. */
  noted(): void {
    this.#seen = this.#state()
    clearTimeout(this.#settling)
  }

  /** Something happened: tells of it once it has been quiet for a while. */
  #look(): void {
    if (this.#state() === this.#seen) return
    this.#seen = this.#state()
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => {
      if (this.#state() !== this.#seen) return this.#look()
      // A file that was removed to be written anew is waited for.
      if (this.#files.some((file) => !existsSync(file))) return
      this.#listen()
      this.#changed()
    }, this.#rhythm.settle)
  }

  /** The folders of the files and of what they point to; a folder is told of swaps that a file's own watch misses. */
  #listen(): void {
    const folders = new Set<string>()
    for (const file of this.#files) {
      folders.add(dirname(file))
      try {
        folders.add(dirname(realpathSync(file)))
      } catch {
        // Not there at this moment.
      }
    }
    for (const [folder, watcher] of this.#watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      this.#watchers.delete(folder)
    }
    for (const folder of folders) {
      if (this.#watchers.has(folder)) continue
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#look())
        // A watched folder that disappears: the poll goes on.
        watcher.on('error', () => this.#forget(folder))
        this.#watchers.set(folder, watcher)
      } catch {
        // No such folder, or no more watches to be had: the poll sees changes later.
      }
    }
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close()
    this.#watchers.delete(folder)
  }

  /** Which files stand there now: where they are in truth, and their versions. */
  #state(): string {
    return this.#files
      .map((file) => {
        try {
          const { ino, size, mtimeMs } = statSync(file)
          return `${realpathSync(file)} ${ino} ${size} ${mtimeMs}`
        } catch {
          return 'gone'
        }
      })
      .join('\n')
  }
}
