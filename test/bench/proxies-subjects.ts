import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Program } from '../../scripts/ensure.ts'
import type { Certificate } from '../support/certificates.ts'
import { launcher } from '../support/sidecar.ts'
import { asks, type Front, type Scenario } from './proxies-scenarios.ts'

/** What a subject is told of where it stands. */
export interface Place {
  readonly port: number
  readonly peer: number
  /** For an admin listener, where it has one. */
  readonly admin: number
  /** For its files; gone afterwards. */
  readonly folder: string
  /** Connections to keep to the peer. */
  readonly keep: number
  /** undefined: HTTP/1.1 in the clear. */
  readonly front: Front | undefined
  /** For TLS towards clients; undefined without it. */
  readonly certificate: Certificate | undefined
}

/** A proxy to measure. */
export interface Subject {
  readonly name: string
  /** What the table calls it. */
  readonly title: string
  /** The Debian program that it is; undefined: it is here. */
  readonly program?: Program
  /** Whether it compiles what it runs as it runs, so that it has to be warmed up for long. */
  readonly warms: boolean
  /** Differs from another subject by a setting. */
  readonly variant?: boolean
  /** Whether its metrics are asked for once a second. */
  readonly scraped?: boolean
  /** What it cannot do is not measured. */
  readonly able?: (scenario: Scenario) => boolean
  /** Writes its configuration. @returns the command that starts it, in the foreground */
  command(place: Place): readonly string[]
}

const node = process.execPath

function beside(file: string): string {
  return new URL(file, import.meta.url).pathname
}

const patience =
  'proxy_read_timeout 600s; grpc_read_timeout 600s; keepalive_timeout 600s; keepalive_requests 100000000;'

const requests = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://peers;'
const calls = 'grpc_pass grpc://peers;'

/** What evenkeel and nginx read alike: `http` to its end. */
function http({ port, peer, keep, front, certificate }: Place, log: string): string {
  // nginx had no directive `http2` before 1.25.1.
  const words = `${front?.tls ? ' ssl' : ''}${front?.http2 ? ' http2' : ''}`
  const tls = certificate
    ? `ssl_protocols TLSv1.3; ssl_certificate ${certificate.certFile}; ssl_certificate_key ${certificate.keyFile};`
    : ''
  return `http {
  access_log ${log};
  ${patience}
  upstream peers { server 127.0.0.1:${peer}; keepalive ${keep}; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096${words};
    ${tls}
    location / { ${front?.calls ? calls : requests} }
    location /ws {
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_pass http://peers;
    }
  }
}
`
}

function evenkeel(place: Place, log: string, admin: string): readonly string[] {
  const file = join(place.folder, 'evenkeel.conf')
  writeFileSync(file, `admin ${admin};\npid ${join(place.folder, 'evenkeel.pid')};\n${http(place, log)}`)
  return [launcher, '-c', file]
}

function nginx(place: Place, log: string): readonly string[] {
  const file = join(place.folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off;
master_process off;
pid ${join(place.folder, 'nginx.pid')};
error_log ${join(place.folder, 'error.log')};
worker_rlimit_nofile 8192;
events { worker_connections 4096; }
${http(place, log)}`,
  )
  return ['nginx', '-p', place.folder, '-e', join(place.folder, 'error.log'), '-c', file]
}

function haproxy({ port, peer, folder, front, certificate }: Place): readonly string[] {
  const file = join(folder, 'haproxy.cfg')
  const both = join(folder, 'both.pem')
  if (certificate) writeFileSync(both, `${certificate.cert}${certificate.key}`)
  const tls = certificate
    ? ` ssl crt ${both} ssl-min-ver TLSv1.3 alpn ${front?.http2 ? 'h2' : 'http/1.1'}`
    : front?.http2
      ? ' proto h2'
      : ''
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  timeout tunnel 600s
  timeout http-keep-alive 600s
frontend front
  bind 127.0.0.1:${port} backlog 4096${tls}
  default_backend peers
backend peers
  server one 127.0.0.1:${peer}${front?.calls ? ' proto h2' : ''}
`,
  )
  return ['haproxy', '-db', '-q', '-f', file]
}

function caddy({ port, peer, folder, keep, front, certificate }: Place): readonly string[] {
  const file = join(folder, 'Caddyfile')
  const site = certificate ? `https://127.0.0.1:${port}` : `http://:${port}`
  const tls = certificate
    ? `tls ${certificate.certFile} ${certificate.keyFile} {\n    protocols tls1.3\n  }`
    : ''
  const clear = front?.http2 && !front.tls ? 'servers {\n    protocols h1 h2c\n  }' : ''
  writeFileSync(
    file,
    `{
  admin off
  auto_https off
  storage file_system ${join(folder, 'caddy')}
  log {
    output discard
  }
  ${clear}
}
${site} {
  bind 127.0.0.1
  ${tls}
  reverse_proxy 127.0.0.1:${peer} {
    transport http {
      ${front?.calls ? 'versions h2c 2' : ''}
      keepalive 600s
      keepalive_idle_conns ${keep}
      keepalive_idle_conns_per_host ${keep}
    }
  }
}
`,
  )
  return ['caddy', 'run', '--config', file, '--adapter', 'caddyfile']
}

export const subjects: readonly Subject[] = [
  {
    name: 'evenkeel',
    title: 'evenkeel',
    warms: true,
    command: (place) => evenkeel(place, 'off', 'off'),
  },
  {
    name: 'evenkeel-scraped',
    title: 'evenkeel, `/metrics` read once a second',
    warms: true,
    variant: true,
    scraped: true,
    command: (place) => evenkeel(place, 'off', `127.0.0.1:${place.admin}`),
  },
  {
    name: 'evenkeel-log',
    title: 'evenkeel, JSON access log',
    warms: true,
    variant: true,
    command: (place) => evenkeel(place, join(place.folder, 'access.log'), 'off'),
  },
  {
    name: 'nginx',
    title: 'nginx',
    program: 'nginx',
    warms: false,
    command: (place) => nginx(place, 'off'),
  },
  {
    name: 'nginx-log',
    title: 'nginx, access log',
    program: 'nginx',
    warms: false,
    variant: true,
    command: (place) => nginx(place, join(place.folder, 'access.log')),
  },
  { name: 'haproxy', title: 'HAProxy', program: 'haproxy', warms: false, command: haproxy },
  { name: 'caddy', title: 'Caddy', program: 'caddy', warms: false, command: caddy },
  {
    name: 'fastify',
    title: '`@fastify/http-proxy`',
    warms: true,
    able: ({ front }) => front === undefined,
    command: ({ port, peer, keep }) => [node, beside('fastify-proxy.ts'), `${port}`, `${peer}`, `${keep}`],
  },
  {
    name: 'plain',
    title: '`node:http` and undici, doing nothing else',
    warms: true,
    able: ({ ask, front }) =>
      front === undefined && asks[ask].length < 1024 * 1024 && ask !== 'post' && ask !== 'websocket',
    command: ({ port, peer, keep }) => [node, beside('forward-plain.ts'), `${port}`, `${peer}`, `${keep}`],
  },
]
