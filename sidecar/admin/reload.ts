import type { FastifyInstance } from 'fastify'
import type { Facts } from './facts.ts'

/** `POST /reload`: reads the configuration anew. One that fails changes nothing and is answered with its error. */
export function reload(app: FastifyInstance, facts: Facts): void {
  app.post('/reload', async (_request, reply) => {
    const reloaded = await facts.reload()
    if (!reloaded.ok) return reply.code(422).send({ error: reloaded.error })
    return reply.send({ ok: true, generation: facts.generation() })
  })
}
