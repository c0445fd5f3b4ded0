import { methods } from '../../sidecar/balance/methods.ts'
import type { Scenario } from './tail-scenarios.ts'

/** A method as the sidecar is configured with it, or the best possible, which goes without a sidecar. */
export interface Subject {
  readonly name: string
  /** Directives of the group; undefined for the best possible. */
  readonly words: string | undefined
  /** Which of a scenario's targets it has, if any. */
  readonly target?: keyof Scenario['targets']
}

export const ideal: Subject = { name: 'best possible', words: undefined }

/*
 * Hashes are left out: every request here would have a key of its own, which makes them a draw without any choice.
 */
const known: readonly Subject[] = [
  { name: 'round_robin', words: '' },
  { name: 'least_conn', words: 'least_conn;' },
  { name: 'random', words: 'random;' },
  { name: 'random_two', words: 'random two least_conn;' },
  { name: 'least_time_plain', words: 'least_time last_byte plain;' },
  { name: 'least_time', words: 'least_time last_byte;', target: 'default' },
  { name: 'least_time_best', words: 'least_time last_byte best;', target: 'best' },
  { name: 'feedback', words: 'feedback $upstream_http_x_drain inverse;' },
]

/** Those whose method the program has. */
export const subjects: readonly Subject[] = known.filter(({ words }) => {
  const directive = words?.split(' ')[0]?.replace(';', '')
  return !directive || methods.some(({ name }) => name === directive)
})

/**
 * A configuration in nginx syntax: for each method a group on its own peers and a server on `PORT1`, `PORT2`, …, and
 * on `PORT` one that answers by itself.
 * @param groups ports of each one's peers
 */
export function configuration(groups: readonly { words: string; ports: readonly number[] }[]): string {
  const blocks = groups.map(
    ({ words, ports }, i) => `
  upstream group${i + 1} {
    ${words}
    ${ports.map((port) => `server 127.0.0.1:${port};`).join(' ')}
    keepalive 256;
  }
  server {
    listen 127.0.0.1:PORT${i + 1};
    keepalive_requests 1000000;
    location / { proxy_pass http://group${i + 1}; }
  }`,
  )
  return `admin off;\nworker_processes 1;\nhttp {\n  access_log off;
  server { listen 127.0.0.1:PORT; keepalive_requests 1000000; return 200 "here"; }${blocks.join('')}\n}\n`
}
