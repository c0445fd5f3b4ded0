import { createServer } from 'node:http'

/** A peer that costs little: answers every request with a short text. Prints its port. */
const body = Buffer.from('hello\n')
const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, ['Content-Type', 'text/plain', 'Content-Length', String(body.length)])
  response.end(body)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : address}\n`)
})
