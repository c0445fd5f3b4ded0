import { readFileSync } from 'node:fs'
import type { FleetOptions } from '../feedback/fleet/options.ts'
import { fleetOptions } from './build/fleet-options.ts'
import { PartError, placed } from './build/place.ts'
import type { Plan } from './build/plans.ts'
import { type Basis, type Prepared, prepare, type Running } from './build/running.ts'
import { type Loaded, load } from './config/load.ts'
import type { Model } from './config/model.ts'
import { type Membership, noMembership } from './membership.ts'
import { accessLogPaths, loadOptions, pathOf, type Source } from './source.ts'
import type { ErrorLogSpec } from './telemetry/error-log.ts'
import { logFiles } from './telemetry/log-files.ts'
import { failureText } from './telemetry/system-error.ts'
import { TlsStore } from './tls/store.ts'
import { version } from './version.ts'

/** A configuration that has been read, with what it needs from outside. */
interface Complete {
  readonly loaded: Loaded
  readonly token: string | undefined
  readonly errorLogs: readonly ErrorLogSpec[]
  /** Undefined where no other instances are to be shared with. */
  readonly fleet: FleetOptions | undefined
}

/** One that is known to be good. */
export interface Ready extends Complete {
  readonly prepared: Prepared
}

/** One that is served by. It refers to nothing that ran before it. */
export interface InForce extends Complete {
  readonly basis: Basis
  /** With the peers that its groups have now. */
  readonly plans: readonly Plan[]
}

export function inForce({ prepared: { basis, plans }, loaded, token, errorLogs, fleet }: Ready): InForce {
  return { loaded, token, errorLogs, fleet, basis, plans }
}

/**
 * Reads a configuration and puts it together, without touching what runs.
 * @param threads how many threads will serve by it beside this one; 0: this one does
 * @param membership who belongs to its groups beside whom it names
 * @throws Error with nginx's words, ConfigError where the place is known
 */
export async function makeReady(
  source: Source,
  old: Running | undefined,
  threads: (loaded: Loaded) => Promise<number>,
  membership: Membership = noMembership,
): Promise<Ready> {
  const loaded = load(source.file, loadOptions(source))
  return completed(source, loaded, old, await threads(loaded), membership)
}

/** The same for a configuration that has been read. */
export async function completed(
  source: Source,
  loaded: Loaded,
  old: Running | undefined,
  threads = 0,
  membership: Membership = noMembership,
): Promise<Ready> {
  const { model } = loaded
  const options = { prefix: source.prefix, version, tls: new TlsStore() }
  const misplaced = (error: unknown) => {
    throw placed(error, loaded)
  }
  const prepared = await prepare(loaded, options, old, threads, membership).catch(misplaced)
  const fleet = await fleetOptions(model, source.prefix).catch(misplaced)
  const token = readToken(loaded, source.prefix)
  const errorLogs = errorLogsOf(model, source)
  // A file that cannot be opened is a mistake that has to show before anything changes.
  for (const { path } of errorLogs) logFiles.open(path)
  return { loaded, prepared, token, errorLogs, fleet }
}

/** The files that a configuration was read from, with those that it names: what they say holds until they are read again. */
export function pathsRead({ loaded, prepared }: Ready, { prefix }: Source): string[] {
  const token = loaded.model.admin_token_file
  const paths = loaded.files.map(({ path }) => path)
  if (token !== undefined) paths.push(pathOf(token, prefix))
  paths.push(...(prepared.basis.options.tls?.paths ?? []))
  return paths
}

/** The files that it writes logs to, absolute. */
export function logPaths({ errorLogs, loaded }: Complete, { prefix }: Source): string[] {
  return [...errorLogs.map(({ path }) => path), ...accessLogPaths(loaded.model, prefix)]
}

function errorLogsOf(model: Model, { prefix, errorLog }: Source): ErrorLogSpec[] {
  const lines =
    model.error_log ?? (errorLog === undefined ? [] : [{ path: errorLog, level: 'notice' as const }])
  return lines.map((line) => ({ ...line, path: pathOf(line.path, prefix) }))
}

function readToken(loaded: Loaded, prefix: string): string | undefined {
  const { admin_token_file: file } = loaded.model
  if (file === undefined) return undefined
  const path = pathOf(file, prefix)
  const wrong = (text: string) => placed(new PartError(text, loaded.model, 'admin_token_file'), loaded)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw wrong(`open() "${path}" failed (${failureText(error)})`)
  }
  if (text === '') throw wrong(`admin token file "${path}" is empty`)
  return text
}
