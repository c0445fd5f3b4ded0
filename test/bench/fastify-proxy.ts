import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'

/** `@fastify/http-proxy` as its users have it, without a log: `fastify-proxy.ts PORT PEER-PORT CONNECTIONS`. */
const [port, peer, connections] = process.argv.slice(2)
const app = fastify({ logger: false, keepAliveTimeout: 600_000 })
app.register(httpProxy, {
  upstream: `http://127.0.0.1:${peer}`,
  websocket: true,
  undici: { connections: Number(connections), pipelining: 1, keepAliveTimeout: 60_000 },
})
await app.listen({ port: Number(port), host: '127.0.0.1' })
