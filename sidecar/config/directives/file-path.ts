import { hasVariables } from '../address.ts'
import { Fault } from '../fault.ts'

/**
 * The path of a file with certificates, keys or the like. It may hold what a secret looks like, so messages do not
 * repeat it.
 * @throws Fault for what is no path: variables, and where else nginx can find such a thing
 */
export function filePath(directive: string, path: string): string {
  const scheme = /^(data|engine|store):/.exec(path)
  if (scheme) throw new Fault(`"${scheme[1]}:" in "${directive}" directive is not supported yet`)
  if (hasVariables(path)) throw new Fault(`variables in "${directive}" directive are not supported yet`)
  return path
}

/**
 * The path of a log file.
 * @throws Fault for what is no path: variables, and where else nginx can log to
 */
export function logPath(directive: string, path: string): string {
  const instead = 'log to a file, or to /dev/stdout or /dev/stderr'
  const scheme = /^(syslog|memory):/.exec(path)
  if (scheme) {
    throw new Fault(`"${scheme[1]}:" in "${directive}" directive is not supported yet, ${instead}`, 'path')
  }
  if (hasVariables(path)) {
    throw new Fault(`variables in the path of "${directive}" directive are not supported yet`, 'path')
  }
  return path
}
