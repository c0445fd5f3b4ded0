/*
 * The configuration under test: a group for each method over the same peers, and locations for what else there is. It
 * comes in variants with more and fewer peers, which reloads go through in turn.
 */

/** Peers that do what they are asked, in every variant. */
export const steady = ['a', 'b', 'c', 'd'] as const
/** A peer that does what it is asked and is there in some variants only. */
export const visiting = ['e'] as const
/** Peers that change their moods; the harness shuts their ports too. */
export const moody = ['m', 'n', 'o'] as const
/** A peer whose process is killed and halted. */
export const mortal = ['k'] as const

/** Peers that are not in every variant. */
export const comingAndGoing = ['e', 'm', 'o'] as const

/** Groups that every steady peer is in, with retries: what is idempotent is answered whatever the others do. */
export const groups = [
  'rr',
  'lt',
  'lb',
  'lc',
  'rnd',
  'ring',
  'iph',
  'fb',
  'split',
  'stick',
  'learn',
  'line',
  'switch',
] as const
/** Peers whose cookie names them, and nobody else, as long as the program runs. */
export const faithful = ['a', 'b', 'c'] as const
/** The name whose services are followed, and the peers that may be among them. */
export const followedName = 'shop.soak'
export const followedPeers = ['a', 'b', 'c', 'd', 'e'] as const

export const readTimeoutMs = 1000
/** What `client_max_body_size` and `proxy_replay_buffer` are. */
export const mostBody = 2 * 1024 * 1024
export const mostReplayed = 64 * 1024
export const variants = 3

const methods: Readonly<Record<(typeof groups)[number], string>> = {
  rr: '',
  lt: 'least_time header;',
  lb: 'least_time last_byte best;',
  lc: 'least_conn;',
  rnd: 'random two least_conn;',
  ring: 'hash $arg_k consistent;',
  iph: 'ip_hash;',
  fb: 'feedback $upstream_http_x_capacity;',
  split: 'split canary=30% key=$arg_k; shadow least_time header;',
  stick: 'sticky cookie peer; sticky_secret soak;',
  learn: 'least_conn; sticky learn create=$arg_k lookup=$arg_k zone=learnt:64k timeout=5s;',
  line: 'queue 500 timeout=20s;',
  switch: 'backup_switch permanent=1s;',
}

/** What stands outside of the program. */
export interface Surroundings {
  /** Of a peer by its name. */
  address(name: string): string
  /** Name server, of `followedName`. */
  readonly dns: string
  /** Peers of sessions, the last of which is not there in every variant. */
  readonly bytes: readonly string[]
  /** Where every connection is refused. */
  readonly refusing: string
}

/** @param variant which peers are there, from 0 */
export function configuration(
  { address, dns, bytes, refusing }: Surroundings,
  threads: number,
  variant: number,
): string {
  const absent = variant === 1 ? ['e', 'm'] : variant === 2 ? ['o'] : []
  const servers = (group: string) =>
    [...steady, ...visiting, ...moody, ...mortal]
      .filter((name) => !absent.includes(name))
      .map((name) => `server ${address(name)} ${parameters(group, name)};`)
      .join('\n    ')
  const block = (group: (typeof groups)[number]) => `
  upstream ${group} {
    zone ${group} 256k;
    ${methods[group]}
    keepalive 16; keepalive_timeout 1s;
    ${servers(group)}
  }`
  const sessionPeers = (variant === 1 ? bytes.slice(0, -1) : bytes).map((one) => `server ${one};`).join(' ')
  const calm = [...steady.slice(0, 3), ...visiting].filter((name) => !absent.includes(name))
  return `
worker_processes ${threads};
admin 127.0.0.1:ADMIN;
drain_timeout 10s;
http {
  access_log access.log json;
  keepalive_requests 500;
  client_max_body_size ${mostBody / 1024}k;
  proxy_replay_buffer ${mostReplayed / 1024}k;
  proxy_connect_timeout 1s;
  proxy_read_timeout ${readTimeoutMs}ms;
  proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504;
  proxy_next_upstream_budget off;
  proxy_next_upstream_backoff 2ms 20ms;
  map $upstream_status $probed { default ""; 200 "1"; }
  ${groups.map(block).join('')}
  upstream calm {
    zone calm 256k;
    least_time header;
    keepalive 16; keepalive_timeout 1s;
    ${calm.map((name) => `server ${address(name)} max_fails=0;`).join(' ')}
  }
  upstream followed {
    zone followed 64k;
    keepalive 16; keepalive_timeout 1s;
    resolver ${dns} ipv6=off; resolver_timeout 1s;
    server ${followedName} service=_http._tcp resolve max_fails=0;
  }
  upstream raw { zone raw 64k; keepalive_timeout 1s; server ${address('d')} max_fails=0; }
  server {
    listen 127.0.0.1:PORT;
    status_zone front;
    ${groups.map((group) => `location /${group}/ { proxy_pass http://${group}; }`).join('\n    ')}
    location /followed/ { proxy_pass http://followed; }
    location /calm/ { proxy_pass http://calm; upstream_probe alive uri=/probe interval=2s timeout=1s test=$probed fails=3; }
    location /raw/ { proxy_next_upstream off; proxy_pass http://raw; }
    location /page/ {
      proxy_next_upstream off; proxy_pass http://raw;
      proxy_intercept_errors on; error_page 500 502 503 504 =203 /sorry;
    }
    location = /sorry { return 200 "sorry\n"; }
    location /direct/ { proxy_buffering off; proxy_request_buffering off; proxy_pass http://calm; }
    location /ws/ {
      proxy_pass http://calm; proxy_read_timeout 20s;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";
    }
    location /own/ { return 200 "own\n"; }
  }
}
stream {
  log_format soak '{"protocol":"$protocol","port":$remote_port,"status":$status,"sent":$bytes_sent,"received":$bytes_received}';
  access_log sessions.log soak;
  proxy_timeout 30s;
  upstream bytes { zone bytes 64k; least_conn; ${sessionPeers} server ${refusing} max_fails=2 fail_timeout=1s; }
  upstream datagrams { zone datagrams 64k; least_time first_byte; ${sessionPeers} }
  server { listen 127.0.0.1:PORT2; proxy_pass bytes; status_zone tcp; }
  server { listen 127.0.0.1:PORT3; proxy_pass bytes; status_zone tcp; proxy_half_close on; }
  server { listen 127.0.0.1:PORT4 proxy_protocol; proxy_pass bytes; status_zone tcp; }
  server { listen 127.0.0.1:PORT5 udp; proxy_pass datagrams; status_zone udp; proxy_responses 1; }
}
`
}

function parameters(group: string, name: string): string {
  const words: string[] = []
  if (steady.some((one) => one === name) || name === 'e') words.push('max_fails=0')
  else words.push('max_fails=3', 'fail_timeout=1s')
  if (group === 'rr' && name === 'a') words.push('weight=3')
  if (group === 'rr' && name === 'd') words.push('backup')
  if (group === 'lc' && name === 'a') words.push('max_conns=4')
  if (group === 'line') words.push('max_conns=2')
  if (group === 'switch' && steady.some((one) => one === name)) words.push('backup')
  if (group === 'split' && (name === 'm' || name === 'd')) words.push('track=canary')
  return words.join(' ')
}
