import { isIP } from 'node:net'
import { hasVariables } from '../config/address.ts'
import type { HttpBlock, LocationBlock, MapBlock } from '../config/model.ts'
import type { RewriteStep } from '../config/rewrite-model.ts'

/*
 * Addresses that a `proxy_pass` with a variable may come to, as far as the configuration says what the variable may be: a
 * `map` of addresses, or a `set`. They are groups of one server like those that a `proxy_pass` without variables names.
 */

/** More addresses than these that one configuration would make groups of are none; each takes memory, and numbers of its own. */
export const mostWritten = 256

/** What a variable may be, by its name with the `$`; none where the configuration does not say. */
export type Written = ReadonlyMap<string, readonly string[]>

/** The values of `map` blocks and of `set` lines. Those with variables in them are left out. */
export function writtenValues({
  maps = {},
  servers = [],
}: {
  readonly maps?: Readonly<Record<string, MapBlock>>
  readonly servers?: HttpBlock['servers']
}): Written {
  const written = new Map<string, string[]>()
  const note = (variable: string, value: string | undefined) => {
    if (value === undefined || value === '' || hasVariables(value)) return
    const values = written.get(variable)
    if (values) values.push(value)
    else written.set(variable, [value])
  }
  for (const [variable, { default: otherwise, values = {} }] of Object.entries(maps)) {
    note(variable, otherwise)
    for (const value of Object.values(values)) note(variable, value)
  }
  const steps = (list: readonly RewriteStep[] = []) => {
    for (const step of list) {
      if ('set' in step) note(`$${step.set.variable.replace(/^\$/, '')}`, step.set.value)
      else if ('if' in step) steps(step.rewrites)
    }
  }
  const walk = (locations: Readonly<Record<string, LocationBlock>> = {}) => {
    for (const location of Object.values(locations)) {
      steps(location.rewrites)
      walk(location.locations)
    }
  }
  for (const server of servers) {
    steps(server.rewrites)
    walk(server.locations)
  }
  return written
}

const firstVariable = /^([^$]*)\$(?:\{(\w+)\}|(\w+))(.*)$/s

/** What a text becomes with each value of its first variable. Others in it stay as they are. */
export function writtenTexts(text: string, written: Written): string[] {
  const [, before = '', braced, bare, after = ''] = firstVariable.exec(text) ?? []
  const name = braced ?? bare
  return (
    (name === undefined ? undefined : written.get(`$${name}`))?.map((value) => before + value + after) ?? []
  )
}

/** Whether a host needs no looking up: an IP address, IPv6 in its brackets or not. Names have to be written in a `proxy_pass`. */
export function isNumeric(host: string): boolean {
  return isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0
}
