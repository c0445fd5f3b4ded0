/** A server of the program under test, set up in one way. */
export interface Variant {
  readonly name: string
  /** The word for its port in the configuration. */
  readonly port: string
  /** Attempts that a request may have. */
  readonly attempts: number
  /** Its time-outs are long enough that none of them has to be met. */
  readonly patient: boolean
  /** Directives of the upstream besides its servers, and of the server. */
  readonly upstream: string
  readonly server: string
}

export const variants: readonly Variant[] = [
  {
    name: 'buffered, one try, fresh connections',
    port: 'PORT',
    attempts: 1,
    patient: true,
    upstream: 'keepalive 0;',
    server: 'proxy_next_upstream off;',
  },
  {
    name: 'unbuffered, one try, kept connections',
    port: 'PORT2',
    attempts: 1,
    patient: true,
    upstream: 'keepalive 4;',
    server: 'proxy_next_upstream off; proxy_buffering off; proxy_request_buffering off;',
  },
  {
    name: 'buffered, two tries, kept connections',
    port: 'PORT3',
    attempts: 2,
    patient: true,
    upstream: 'keepalive 4;',
    server: 'proxy_next_upstream error timeout invalid_header http_503;',
  },
  {
    name: 'unbuffered, two tries, fresh connections',
    port: 'PORT4',
    attempts: 2,
    patient: true,
    upstream: 'keepalive 0;',
    server:
      'proxy_next_upstream error timeout invalid_header http_503; proxy_buffering off; proxy_request_buffering off; keepalive_requests 3;',
  },
  {
    name: 'short time-outs, two tries, kept connections',
    port: 'PORT5',
    attempts: 2,
    patient: false,
    upstream: 'keepalive 4;',
    server:
      'proxy_next_upstream error timeout invalid_header http_503; client_header_timeout 400ms; client_body_timeout 400ms; keepalive_timeout 600ms; proxy_read_timeout 400ms; proxy_send_timeout 400ms; proxy_connect_timeout 2s; send_timeout 1s;',
  },
]

/** The configuration with all of them. */
export function configuration(peers: readonly number[], threads: number): string {
  const blocks = variants.map(({ port, upstream, server, attempts }, i) => {
    const servers = peers.map((peer) => `server 127.0.0.1:${peer} max_fails=0;`)
    return `upstream up${i} { ${servers.slice(0, attempts).join(' ')} ${upstream} zone z${i} 64k; }
  server { listen 127.0.0.1:${port}; ${server} location / { proxy_pass http://up${i}; } }`
  })
  return `worker_processes ${threads};
http {
  log_format fuzz '$status|$upstream_reason|$request';
  access_log access.log fuzz;
  explain_header X-Explain;
  proxy_redirect off;
  proxy_buffer_size 16k;
  client_max_body_size 1m;
  ${blocks.join('\n  ')}
}
`
}
