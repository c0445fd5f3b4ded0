import { covers } from './names.ts'

/**
 * What both readers and the checks know already and nothing obeys so far: refused by name. What is built goes out of
 * this list, and is then read, printed, and told of in the reference and the schema.
 *
 * A directive by its name (an asterisk stands for any text), or with a parameter or a value after it.
 */
export const pending: readonly string[] = []

/** Whether nothing of a directive is obeyed so far. */
export function isPending(name: string): boolean {
  return covers(pending, name)
}

/** A parameter, or the value, of a directive that is not obeyed so far. */
export function pendingPart(name: string, value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) {
    return pending.includes(`${name} ${value}`) ? `"${name} ${value}"` : undefined
  }
  const key = Object.keys(value).find((key) => pending.includes(`${name} ${key}`))
  return key === undefined ? undefined : `"${key}" parameter`
}
