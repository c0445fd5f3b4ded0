import { createServer } from 'node:net'

/** Those given out; at first the one of the range that `fetch` refuses to speak to. */
const given = new Set<number>([10_080])

/**
 * A TCP port that nobody listens on and that nobody else of this process was given. It lies below the range from
 * which the kernel takes the source ports of connections, so no outgoing connection takes it in the meantime.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = 10_000 + Math.floor(Math.random() * 22_000)
    if (given.has(port)) continue
    given.add(port)
    if (await free(port, host)) return port
  }
  throw new Error(`no free port on ${host}`)
}

function free(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
