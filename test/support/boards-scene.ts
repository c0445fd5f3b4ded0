import { setTimeout as sleep } from 'node:timers/promises'
import { Issuer } from './authority.ts'
import { type Backend, type Backends, backends, type Exchange } from './backend.ts'
import { change } from './changing.ts'
import { dial } from './client.ts'
import { type DnsServer, dnsServer } from './dns-server.ts'
import { failing, GrpcClient, type GrpcPeer, grpcPeer } from './grpc.ts'
import { type Instances, instances, Visitors } from './instances.ts'
import { Receiver } from './otlp.ts'
import { type RedisServer, redisServer } from './redis.ts'
import type { Sidecar } from './sidecar.ts'
import { echoPeer, type TcpPeer } from './tcp-peer.ts'

/** Every n-th answer is of one kind, all others of another. */
function nth(
  n: number,
  one: (exchange: Exchange) => Promise<void>,
  other: (exchange: Exchange) => Promise<void>,
) {
  let count = 0
  return (exchange: Exchange) => (++count % n === 0 ? one : other)(exchange)
}

const scripts = {
  good: { body: 'good', after: 4 },
  slower: { body: 'slower', after: 12 },
  canary: nth(
    6,
    (exchange) => exchange.reply({ status: 500 }),
    (exchange) => exchange.reply({ body: 'canary', after: 60 }),
  ),
  failing: { status: 503 },
  full: { body: 'full', after: 150 },
  probed: { body: 'probed' },
  ill: (exchange: Exchange) => exchange.reply({ status: exchange.target === '/health' ? 503 : 200 }),
  telling: { body: 'telling', headers: { 'X-Capacity': '80' } },
  reticent: nth(
    3,
    (exchange) => exchange.reply({ body: 'silent' }),
    (exchange) => exchange.reply({ body: 'telling', headers: { 'X-Capacity': '40' } }),
  ),
}

type Role = keyof typeof scripts

/**
 * Every kind of group at once, at two instances of a fleet, under load: what dashboards show has something to show. The
 * first instance has loaded its configuration twice, the second has refused a wrong one.
 */
export class BoardsScene implements AsyncDisposable {
  #redis!: RedisServer
  #peers!: Backends
  #fleet!: Instances
  #visitors: Visitors[] = []
  #traces!: Receiver
  #dns!: DnsServer
  #echo!: TcpPeer
  #caller!: GrpcPeer
  readonly #issuer = new Issuer()
  readonly #sessions = new AbortController()

  async open(): Promise<this> {
    this.#redis = await redisServer()
    this.#traces = await new Receiver('http').listen()
    this.#peers = await backends(Object.values(scripts))
    this.#echo = await echoPeer()
    this.#caller = await grpcPeer({
      unary: ({ request }, done) => (request === '0' ? done(null, '') : done(failing(Number(request), ''))),
    })
    this.#dns = await dnsServer()
    for (const name of ['found', 'kept']) await this.#dns.has(`${name}.internal`, ['127.0.0.1'])
    this.#fleet = await instances(2, this.#config(), {
      group: 'shop',
      busy: true,
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: this.#traces.url },
    })
    for (const [path, each, pauseMs] of [
      ['/shop', 2, 10],
      ['/retry', 1, 60],
      ['/spent', 1, 30],
      ['/full', 3, 5],
      ['/gone', 1, 100],
      ['/probed', 1, 40],
      ['/told', 1, 20],
      ['/queued', 3, 5],
      ['/learned', 1, 5],
      ['/moved', 1, 50],
      ['/named', 1, 50],
    ] as const) {
      this.#visitors.push(new Visitors(this.instances, each, pauseMs, path))
    }
    for (const { ports } of this.instances) {
      void this.#talk(ports['PORT2']!)
      void this.#call(ports['PORT4']!)
    }
    await this.#dns.instead('kept.internal', { code: 'SERVFAIL' })
    const [one, other] = this.instances
    await one!.reload()
    await change(one!, 'PATCH', `moved/peers/${this.address('probed')}`, { weight: 2 })
    await other!.rewrite('nonsense;')
    other!.signal('SIGHUP')
    return this
  }

  get instances(): readonly Sidecar[] {
    return this.#fleet.list
  }

  /** Address of a peer. */
  address(role: Role): string {
    return this.#peer(role).address
  }

  #peer(role: Role): Backend {
    return this.#peers.list[Object.keys(scripts).indexOf(role)]!
  }

  /** Short sessions, one after the other. */
  async #talk(port: number): Promise<void> {
    const { signal } = this.#sessions
    while (!signal.aborted) {
      const client = await dial(port).catch(() => undefined)
      await client?.write('hello')
      await client?.inbox.take(5).catch(() => {})
      client?.close()
      await sleep(40)
    }
  }

  /** Calls of gRPC, of which the peer fails some. */
  async #call(port: number): Promise<void> {
    using client = new GrpcClient(port)
    for (let i = 0; !this.#sessions.signal.aborted; i++) {
      await client.unary(['0', '0', '13'][i % 3]!)
      await sleep(40)
    }
  }

  #certificate(): string {
    const { certFile, keyFile } = this.#issuer.issue('front')
    return `ssl_certificate ${certFile}; ssl_certificate_key ${keyFile};`
  }

  #config(): string {
    const server = (role: Role, words = '') => `server ${this.#peer(role).address} ${words};`
    return `
fleet ${this.#redis.url} group=boards interval=100ms;
stream {
  upstream db { zone db 64k; server ${this.#echo.address}; server 127.0.0.1:1 backup; }
  server { listen 127.0.0.1:PORT2; proxy_pass db; }
}
http {
  resolver ${this.#dns.address} valid=1s status_zone=dns;
  access_log off;
  proxy_next_upstream error timeout http_503;
  upstream shop {
    zone shop 64k;
    least_time header;
    split canary=40%;
    shadow least_conn;
    ${server('good')} ${server('slower', 'max_conns=100 max_conns_scope=fleet')} ${server('canary', 'track=canary')}
    keepalive 8;
  }
  upstream idle {
    zone idle 64k;
    split canary=10%;
    ${server('good')} ${server('canary', 'track=canary')}
  }
  upstream retry { zone retry 64k; ${server('good')} ${server('failing', 'max_fails=0')} }
  upstream spent { zone spent 64k; ${server('good')} ${server('failing', 'max_fails=0')} }
  upstream full { zone full 64k; ${server('full', 'max_conns=1')} }
  upstream gone {
    zone gone 64k;
    server 127.0.0.1:1 max_fails=1 fail_timeout=1h;
    server 127.0.0.2:1 max_fails=1 fail_timeout=1h;
  }
  upstream probed { zone probed 64k; ${server('probed', 'slow_start=1h')} ${server('ill')} keepalive 0; }
  upstream told {
    zone told 64k;
    feedback $upstream_http_x_capacity;
    ${server('telling')} ${server('reticent')}
  }
  upstream queued { zone queued 64k; ${server('full', 'max_conns=1')} queue 1 timeout=100ms; }
  upstream learned {
    zone learned 64k;
    sticky learn zone=visits:32k create=$request_id lookup=$request_id;
    ${server('good')} ${server('probed')}
  }
  upstream moved {
    zone moved 64k;
    ${server('good', 'down')} ${server('probed', 'backup')}
    backup_switch permanent=1h;
  }
  upstream named {
    zone named 64k;
    ${['found', 'kept', 'lost'].map((name) => `server ${name}.internal:${this.#peer('good').port} resolve;`).join(' ')}
  }
  upstream called { zone called 64k; server ${this.#caller.address}; }
  server { listen 127.0.0.1:PORT4; http2 on; location / { grpc_pass grpc://called; } }
  server {
    listen 127.0.0.1:PORT;
    location /shop { proxy_pass http://shop; }
    location /retry { proxy_pass http://retry; }
    location /spent { proxy_pass http://spent; proxy_next_upstream_budget 1% min=0 window=10s; }
    location /full { proxy_pass http://full; }
    location /gone { proxy_pass http://gone; }
    location /idle { proxy_pass http://idle; }
    location /probed {
      proxy_pass http://probed;
      upstream_probe alive uri=/health interval=300ms test=$good scope=instance;
    }
    location /told { proxy_pass http://told; }
    location /queued { proxy_pass http://queued; }
    location /learned { proxy_pass http://learned; }
    location /moved { proxy_pass http://moved; }
    location /named { proxy_pass http://named; }
  }
  server { listen 127.0.0.1:PORT3 ssl; status_zone front; ${this.#certificate()} return 204; }
  map $upstream_status $good { 200 "1"; }
}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sessions.abort()
    for (const visitors of this.#visitors) await visitors[Symbol.asyncDispose]()
    await this.#fleet?.[Symbol.asyncDispose]()
    await this.#peers?.[Symbol.asyncDispose]()
    await this.#echo?.[Symbol.asyncDispose]()
    await this.#caller?.[Symbol.asyncDispose]()
    await this.#dns?.stop()
    await this.#traces?.[Symbol.asyncDispose]()
    await this.#redis?.stop()
    this.#issuer[Symbol.dispose]()
  }
}
