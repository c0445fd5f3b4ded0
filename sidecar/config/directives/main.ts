import { Type } from '../../../feedback/schema-type.ts'
import { formatAddress, listenAddress } from '../address.ts'
import { directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { logLevels } from '../model.ts'
import { flag, integer, line, time, word } from '../schema.ts'
import { logPath } from './file-path.ts'

/** Directives of the process, outside of all blocks. */
export const mainDirectives = [
  directive({
    name: 'admin',
    in: ['main'],
    doc: 'Where the admin server listens: `/status`, `/metrics`, health and changes. `readonly` serves only what changes nothing.',
    default: '127.0.0.1:9900',
    args: Type.Object({ address: line, readonly: Type.Optional(flag) }),
    words: ['address'],
    many: true,
    off: true,
    tidy(value) {
      const of = `"${value.address}" of the "admin" directive`
      // A bare port or name would open every interface by accident.
      if (/^\d+$/.test(value.address)) throw new Fault(`no host in ${of}`)
      if (!/^unix:/i.test(value.address) && !/:\d+$/.test(value.address)) throw new Fault(`no port in ${of}`)
      return { ...value, address: formatAddress(listenAddress(value.address, 'admin')) }
    },
  }),
  directive({
    name: 'admin_host',
    in: ['main'],
    doc: 'Further host names that admin requests may carry.',
    args: Type.Array(Type.String({ pattern: '^[A-Za-z0-9._-]+$' })),
    many: true,
    tidy: (names) => names.map((name) => name.toLowerCase()),
  }),
  directive({
    name: 'admin_token_file',
    in: ['main'],
    doc: 'File with the token that everything that changes something asks for.',
    args: line,
  }),
  directive({
    name: 'config_watch',
    in: ['main'],
    doc: 'Reload when the file, or what its symbolic link points to, changes.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'drain_timeout',
    in: ['main'],
    doc: 'How long requests and tunnels in progress may last after a drain began, and tunnels to peers that a reload took away.',
    default: '30s',
    args: time,
  }),
  directive({
    name: 'worker_shutdown_timeout',
    in: ['main'],
    key: 'drain_timeout',
    doc: 'Another name for `drain_timeout`.',
    args: time,
  }),
  directive({
    name: 'drain_delay',
    in: ['main'],
    doc: 'How long to go on accepting after `/readyz` turned 503.',
    default: '0s',
    args: time,
  }),
  directive({
    name: 'error_log',
    in: ['main'],
    doc: 'Where the log of the program goes, and from which level on.',
    default: 'stderr notice',
    args: Type.Object({ path: line, level: Type.Optional(word(...logLevels)) }),
    words: ['path', 'level'],
    many: true,
    wrong: (level) => `invalid log level "${level}"`,
    tidy: ({ path, ...more }) => ({ path: logPath('error_log', path), ...more }),
  }),
  directive({
    name: 'pid',
    in: ['main'],
    doc: 'File for the process id.',
    default: 'evenkeel.pid',
    args: line,
  }),
  directive({
    name: 'worker_processes',
    in: ['main'],
    doc: 'Number of worker threads, 64 at most; `auto` is one a processor. A change takes effect at the next start.',
    default: '1',
    args: Type.Union([Type.Literal('auto'), integer(1, 64)]),
    wrong: (word) => `invalid value "${word}" in "worker_processes" directive`,
  }),
]
