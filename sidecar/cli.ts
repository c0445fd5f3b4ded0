/** What the command line asks for. */
export interface Invocation {
  /** `-c`, as written. */
  config: string | undefined
  /** `-p`, as written. */
  prefix: string | undefined
  /** `-e`, as written: where errors are logged unless the configuration says. */
  errorLog: string | undefined
  /** `-g`: directives that stand before the first line of the file. */
  globals: string | undefined
  /** `-t`, and implied by `-T`. */
  test: boolean
  /** `-T` */
  dump: boolean
  /** `-q` */
  quiet: boolean
  /** `-s` */
  signal: SignalWord | undefined
  /** `-v` and `-V`. */
  version: 'short' | 'long' | undefined
  /** `-h` and `-?`. */
  help: boolean
}

/** What `-s` may say, and the signal it sends. */
export const signals = {
  stop: 'SIGINT',
  quit: 'SIGQUIT',
  reload: 'SIGHUP',
  reopen: 'SIGUSR1',
} as const
export type SignalWord = keyof typeof signals

/** A command line that cannot be obeyed; the message is nginx's, without the program's name. */
export class UsageError extends Error {}

const wants: Readonly<Record<string, string>> = {
  c: 'file name',
  e: 'file name',
  g: 'parameter',
  p: 'directory name',
  s: 'parameter',
}

/**
 * Reads the arguments as nginx does: letters can be run together (`-tc FILE`, `-tcFILE`), the value of a letter is
 * the rest of its word or the next word, and the last of two wins.
 * @param words without the program's name
 * @throws UsageError
 */
export function parseArguments(words: readonly string[]): Invocation {
  const asked: Invocation = {
    config: undefined,
    prefix: undefined,
    errorLog: undefined,
    globals: undefined,
    test: false,
    dump: false,
    quiet: false,
    signal: undefined,
    version: undefined,
    help: false,
  }
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (word === '--help' || word === '--version') {
      mark(asked, word === '--help' ? 'h' : 'v')
      continue
    }
    if (!word.startsWith('-') || word.startsWith('--')) {
      const named = /\.(?:conf|ya?ml|json)$/.test(word) ? `, a configuration is named by "-c ${word}"` : ''
      throw new UsageError(`invalid option: "${word}"${named}`)
    }
    for (let j = 1; j < word.length; j++) {
      const letter = word[j]!
      if (Object.hasOwn(wants, letter)) {
        const rest = word.slice(j + 1)
        const value = rest === '' ? words[++i] : rest
        if (value === undefined || value === '') {
          throw new UsageError(`option "-${letter}" requires ${wants[letter]}`)
        }
        take(asked, letter, value)
        break
      }
      mark(asked, letter)
    }
  }
  return asked
}

function take(asked: Invocation, letter: string, value: string): void {
  if (letter === 'c') asked.config = value
  else if (letter === 'e') asked.errorLog = value
  else if (letter === 'g') asked.globals = value
  else if (letter === 'p') asked.prefix = value
  else if (isSignal(value)) asked.signal = value
  else throw new UsageError(`invalid option: "-s ${value}"`)
}

function mark(asked: Invocation, letter: string): void {
  if (letter === 't') asked.test = true
  else if (letter === 'T') asked.test = asked.dump = true
  else if (letter === 'q') asked.quiet = true
  else if (letter === 'v') asked.version ??= 'short'
  else if (letter === 'V') asked.version = 'long'
  else if (letter === 'h' || letter === '?') asked.help = true
  else throw new UsageError(`invalid option: "${letter}"`)
}

function isSignal(word: string): word is SignalWord {
  return Object.hasOwn(signals, word)
}

/** What `-h` prints. */
export const usage = `Usage: evenkeel [-?hvVtTq] [-s signal] [-p prefix] [-e filename] [-c filename] [-g directives]

Options:
  -?,-h         : this help
  -v            : show version and exit
  -V            : show version and what it runs on, and exit
  -t            : test configuration and exit
  -T            : test configuration, print it as the program understands it, and exit
  -q            : no messages but errors while the configuration is tested
  -s signal     : send a signal to the running program: stop, quit, reopen, reload
  -p prefix     : folder that relative paths start from (default: that of the configuration file)
  -e filename   : where to log errors unless the configuration says so (default: stderr)
  -c filename   : configuration file (default: ./evenkeel.conf, then ./evenkeel.yaml)
  -g directives : directives to be set before the configuration file

evenkeel simulate --help : how to try balancing methods on a group of a configuration without any traffic

Signals: TERM and QUIT drain, INT stops at once, HUP reloads, USR1 reopens the log files.
`
