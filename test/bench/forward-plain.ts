import { createServer } from 'node:http'
import { Pool } from 'undici'

/** The least that a proxy in Node can do with the usual parts: node:http in front, undici's dispatch behind. */
const [port, peer] = process.argv.slice(2)
const pool = new Pool(`http://127.0.0.1:${peer}`, { connections: 64, pipelining: 1 })
createServer((request, response) => {
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
}).listen(Number(port), '127.0.0.1')
