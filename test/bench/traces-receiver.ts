import { createServer } from 'node:http'

/** A receiver of spans that costs little: takes all, looks at nothing. Prints its port. */
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end())
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : address}\n`)
})
