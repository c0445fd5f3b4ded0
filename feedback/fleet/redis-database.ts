import type { Redis } from 'ioredis'
import { refusalOf } from './redis-error.ts'

/**
 * Keeps a client, and those that are made of it, out of every database but its own: where the server refuses to select
 * it, ioredis would only say so, and go on in database 0, which may be somebody else's.
 */
export function inDatabase(redis: Redis): Redis {
  const select = redis.select.bind(redis)
  const duplicate = redis.duplicate.bind(redis)
  return Object.assign(redis, {
    duplicate: (override?: Parameters<typeof duplicate>[0]) => inDatabase(duplicate(override)),
    select: async (database: number | string) => {
      try {
        return await select(database)
      } catch (error) {
        const refusal = refusalOf(error)
        // Without an answer the connection is at its end. A password that is refused is told of by what sent it.
        if (refusal === undefined || (refusal.code === 'NOAUTH' && redis.options.password)) throw error
        redis.disconnect(true)
        if (redis.listenerCount('error') > 0) redis.emit('error', error)
        // It counts as connected once this is over, and must not.
        return await new Promise<never>(() => {})
      }
    },
  })
}
