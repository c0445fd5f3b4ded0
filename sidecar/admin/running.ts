import type { FastifyInstance } from 'fastify'
import { writeYaml } from '../config/yaml/write.ts'
import type { Facts } from './facts.ts'
import { shownChange } from './shown-changes.ts'

/**
 * `/config`: the configuration that runs, as YAML or, with `?format=json`, as JSON. Secrets are masked. What was changed
 * of its groups since it was read stands under `changes`, where there is anything; it is no part of a file.
 */
export function running(app: FastifyInstance, facts: Facts): void {
  app.get<{ Querystring: { format?: string } }>('/config', (request, reply) => {
    const { format = 'yaml' } = request.query
    reply.header('cache-control', 'no-store')
    const model = withChanges(masked(facts.model()), facts)
    if (format === 'json') return reply.type('application/json').send(`${JSON.stringify(model, null, 2)}\n`)
    if (format === 'yaml') return reply.type('application/yaml').send(writeYaml(model, { lineWidth: 0 }))
    return reply.code(400).send({ error: 'unknown "format": it is "yaml" or "json"' })
  })
}

function withChanges(model: unknown, facts: Facts): unknown {
  const list = facts.runtime()?.list() ?? []
  if (list.length === 0) return model
  const changes = list.map((change) => ({ upstream: change.upstream, ...shownChange(change) }))
  // The model is a plain object.
  return { ...(model as object), changes }
}

const mask = '***'
const secretKey = /(?:password|passphrase|secret|credential)s?$/
const secretField = /^(?:proxy-)?authorization$|cookie|token|secret|password|api-?key/i

/**
 * A copy of the model with what nobody should read off a screen replaced: passwords, credentials in URLs, and the
 * values of header fields that carry credentials, unless they are variables alone.
 */
export function masked(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@\s]*@/i, `$1${mask}@`)
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value !== 'object' || value === null) return value
  // Own members of plain data; a member named __proto__ stays a member.
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => {
    if (typeof member === 'string' && secretKey.test(key)) return [key, mask]
    return [key, masked(member)]
  })
  const copy: Record<string, unknown> = Object.fromEntries(entries)
  const { name, value: text } = copy
  if (typeof name === 'string' && typeof text === 'string' && secretField.test(name)) {
    if (!/^(?:\$\w+|\$\{\w+\})*$/.test(text)) copy['value'] = mask
  }
  return copy
}
