import { createServer } from 'node:http'
import { Pool } from 'undici'

/** The least that a proxy in Node can do with the usual parts: node:http in front, undici's dispatch behind. */
const [port, peer, connections = '64'] = process.argv.slice(2)
const pool = new Pool(`http://127.0.0.1:${peer}`, { connections: Number(connections), pipelining: 1 })
const server = createServer((request, response) => {
  pool.dispatch(
    { path: request.url ?? '/', method: 'GET', headers: ['host', 'peer'] },
    {
      onRequestStart() {},
      onResponseStart(controller, status) {
        const raw = controller.rawHeaders
        response.writeHead(status, Array.isArray(raw) ? raw.map(String) : [])
      },
      onResponseData(_, chunk) {
        response.write(chunk)
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        response.destroy()
      },
    },
  )
})
// Connections stay open while others are measured.
server.keepAliveTimeout = 600_000
server.listen({ port: Number(port), host: '127.0.0.1', backlog: 4096 })
