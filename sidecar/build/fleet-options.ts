import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { FleetOptions } from '../../feedback/fleet/options.ts'
import { fleetTimes } from '../config/directives/fleet.ts'
import type { FleetLine } from '../config/fleet-model.ts'
import type { Model } from '../config/model.ts'
import { timeMs } from '../config/units.ts'
import { failureText } from '../telemetry/system-error.ts'
import { PartError } from './place.ts'

/**
 * What the `fleet` directive says, with defaults filled in and its files read.
 * @param prefix folder that relative paths start from
 * @returns undefined where there is no fleet
 * @throws PartError for a file that cannot be read, or holds something else
 */
export async function fleetOptions({ fleet }: Model, prefix: string): Promise<FleetOptions | undefined> {
  if (fleet === undefined) return undefined
  const [password, ca, cert, key] = await Promise.all([
    passwordOf(fleet, prefix),
    fileOf(fleet, 'ca', prefix),
    fileOf(fleet, 'cert', prefix),
    fileOf(fleet, 'key', prefix),
  ])
  checkPem(fleet, { ca, cert, key })
  return {
    urls: fleet.urls,
    group: fleet.group ?? 'default',
    name: fleet.name ?? `${hostname()}-${process.pid}`,
    prefix: fleet.prefix ?? 'evenkeel',
    interval: ms(fleet.interval, fleetTimes.interval),
    ttl: ms(fleet.ttl, fleetTimes.ttl),
    timeout: ms(fleet.timeout, fleetTimes.timeout),
    sentinel: fleet.sentinel,
    cluster: fleet.cluster ?? false,
    user: fleet.user,
    password,
    ca,
    cert,
    key,
    required: fleet.required ?? false,
  }
}

type FileKey = 'password_file' | 'ca' | 'cert' | 'key'

async function fileOf(fleet: FleetLine, name: FileKey, prefix: string): Promise<string | undefined> {
  const file = fleet[name]
  if (file === undefined) return undefined
  const path = resolve(prefix, file)
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new PartError(`open() "${path}" failed (${failureText(error)})`, fleet, name)
  }
}

async function passwordOf(fleet: FleetLine, prefix: string): Promise<string | undefined> {
  const text = await fileOf(fleet, 'password_file', prefix)
  // An editor ends the last line, and a password may end in a space.
  const password = text?.replace(/\r?\n$/, '')
  if (password === '') {
    const path = resolve(prefix, fleet.password_file!)
    throw new PartError(`fleet password file "${path}" is empty`, fleet, 'password_file')
  }
  return password
}

/** What TLS would refuse at every connection shows at once. */
function checkPem(
  fleet: FleetLine,
  { ca, cert, key }: { readonly [name in 'ca' | 'cert' | 'key']: string | undefined },
): void {
  attempt(fleet, 'ca', 'certificate', () => ca !== undefined && new X509Certificate(ca))
  attempt(fleet, 'cert', 'certificate', () => cert !== undefined && createSecureContext({ cert }))
  attempt(fleet, 'key', 'certificate key', () => {
    if (cert !== undefined && key !== undefined) createSecureContext({ cert, key })
  })
}

function attempt(fleet: FleetLine, name: FileKey, what: string, use: () => unknown): void {
  try {
    use()
  } catch (error) {
    throw new PartError(`cannot load ${what} "${fleet[name]}": ${failureText(error)}`, fleet, name)
  }
}

/** A timer of Node takes 31 bits of milliseconds (24.8 days). */
const longestTimer = 2 ** 31 - 1

function ms(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : Math.min(timeMs(text) ?? otherwise, longestTimer)
}
