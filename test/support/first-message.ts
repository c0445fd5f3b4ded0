import { once } from 'node:events'
import { connect as connectTcp, createServer } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'

/** The first message of a real client of TLS, with the record that it is in. */
export async function firstMessage(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const [[accepted], client] = await Promise.all([
    once(server, 'connection'),
    connect({ ...options, socket: connectTcp(address.port, '127.0.0.1') }),
  ])
  client.on('error', () => {})
  const [bytes] = await once(accepted, 'data')
  client.destroy()
  accepted.destroy()
  server.close()
  return bytes
}

/** The same message in records of so many bytes each. */
export function inRecords(first: Buffer, size: number): Buffer {
  const message = first.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size)
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part)
  }
  return Buffer.concat(records)
}
