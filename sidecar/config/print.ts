import type { Model } from './model.ts'
import { writeYaml } from './yaml/write.ts'

/**
 * The model as YAML, for `-T`. It loads again to the same model.
 */
export function printModel(model: Model): string {
  return Object.keys(model).length === 0
    ? ''
    : writeYaml(model, { lineWidth: 0, aliasDuplicateObjects: false })
}

/** Fields whose values are mostly secrets. */
const secretFields =
  /^(?:(?:proxy-)?authorization|cookie|set-cookie|.*(?:token|secret|password|api-?key).*)$/i

/** Keys whose values are secrets. */
const secretKeys: readonly string[] = ['sticky_secret']

/** A copy of the model that can be shown: without passwords in URLs, secrets, and the values of secret fields. */
export function maskModel(model: Model): Model {
  // A copy with the same keys and other texts.
  return masked(model) as Model
}

function masked(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/(:\/\/[^/?#\s:@]*:)[^/?#\s@]*@/g, '$1***@')
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value !== 'object' || value === null) return value
  // Any object here is a plain record of the model.
  const record = value as Readonly<Record<string, unknown>>
  const copy: Record<string, unknown> = Object.getPrototypeOf(record) === null ? Object.create(null) : {}
  for (const [key, inner] of Object.entries(record)) {
    copy[key] = secretKeys.includes(key) && typeof inner === 'string' ? '***' : masked(inner)
  }
  if (
    typeof copy['name'] === 'string' &&
    typeof copy['value'] === 'string' &&
    secretFields.test(copy['name'])
  ) {
    copy['value'] = '***'
  }
  return copy
}
