import type { Cluster, Redis } from 'ioredis'
import type { Board } from '../feedback/fleet/board.ts'
import { refusalOf } from '../feedback/fleet/redis-error.ts'

type Told = (error: unknown, text?: string) => void

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
    // BullMQ wants the version, and would go on to print what it thinks of the rest. The client itself, which wants to be
    // told whether the server is ready, prints what it thinks of not being told.
    info: async (done?: Told) => {
      const told = (done === undefined ? info('server') : info()).catch((error: unknown) => {
        if (!unknown.has(refusalOf(error)?.code)) throw error
        return least
      })
      if (done) told.then((text) => done(null, text), done)
      return told
    },
  })
}

/** The server does not say what it is: the user may not ask, or nobody may. */
const unknown: ReadonlySet<string | undefined> = new Set(['NOPERM', 'ERR'])
/** What is then taken for granted: users have had rights since 6.0, and of an older one BullMQ prints what it thinks. */
const least = 'redis_version:6.2.0\r\n'
