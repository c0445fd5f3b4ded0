import type { Cluster, Redis } from 'ioredis'
import type { Board } from '../feedback/fleet/board.ts'

/**
 * A connection for BullMQ on which it has not the last word.
 * @param wanted whether it is still to be used
 * @param made takes up this one, and those that BullMQ makes of it
 */
export function bullClient(board: Board, wanted: () => boolean, made: (Redis | Cluster)[]): Redis | Cluster {
  const client = board.connect()
  made.push(client)
  const info = client.info.bind(client)
  const connect = client.connect.bind(client)
  return Object.assign(client, {
    duplicate: () => bullClient(board, wanted, made),
    // BullMQ may be about to connect again at the moment that a client is given up.
    connect: () => (wanted() ? connect() : Promise.reject(new Error('given up'))),
    // BullMQ wants the version, and would go on to print what it thinks of the rest; others come with an argument.
    info: (...args: []) => (args.length === 0 ? info('server') : info(...args)),
  })
}
