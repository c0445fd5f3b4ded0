import { isIPv4 } from 'node:net'
import type { Service } from './message.ts'

/** An address that a name has. What services say is undefined where none was asked for. */
export interface Found {
  readonly host: string
  readonly service: Service | undefined
}

/** An address of a host. */
export function bare(host: string): Found {
  return { host, service: undefined }
}

/** By target, port and address, so that all instances have the same order. */
export function sorted(found: readonly Found[]): Found[] {
  const once = new Map<string, Found>()
  for (const each of found) {
    const known = once.get(orderOf(each))?.service
    // Of a service that is listed twice the first in line holds, wherever it stands.
    if (known === undefined || known.priority > each.service!.priority) once.set(orderOf(each), each)
  }
  return Array.from(once.entries())
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, each]) => each)
}

/** A text by which addresses come in the order of their numbers, IPv4 first. */
function orderOf({ host, service }: Found): string {
  const address = isIPv4(host) ? `4 ${host.split('.').map((byte) => byte.padStart(3, '0'))}` : `6 ${host}`
  return `${service?.target ?? ''} ${`${service?.port ?? ''}`.padStart(5, '0')} ${address}`
}
