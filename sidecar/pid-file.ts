import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { failureText } from './telemetry/system-error.ts'

/** A pid file that is not there, or does not name a running evenkeel; the message says which, in nginx's words. */
export class PidError extends Error {}

/**
 * Writes this process's id.
 * @throws as writeFileSync does
 */
export function writePid(path: string): void {
  writeFileSync(path, `${process.pid}\n`)
}

/** Removes the file if it is still this process's; a new instance may have written its own. */
export function removePid(path: string): void {
  try {
    if (readFileSync(path, 'utf8').trim() === String(process.pid)) unlinkSync(path)
  } catch {
    // Gone already, or no longer ours to remove.
  }
}

/**
 * Sends a signal to the process that the file names.
 * @throws PidError
 */
export function signalPid(path: string, signal: NodeJS.Signals): void {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new PidError(`open() "${path}" failed (${failureText(error)})`)
  }
  const pid = Number(text)
  if (!/^\d+$/.test(text) || pid < 1) throw new PidError(`invalid PID number "${text}" in "${path}"`)
  if (isSomebodyElse(pid)) {
    throw new PidError(`process ${pid} is not evenkeel: "${path}" is left over from one that has ended`)
  }
  try {
    process.kill(pid, signal)
  } catch (error) {
    throw new PidError(`kill(${pid}, ${signal}) failed (${failureText(error)})`)
  }
}

/** Whether the number was given to another program since; false where the system does not tell. */
function isSomebodyElse(pid: number): boolean {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return command !== '' && !command.includes('evenkeel')
  } catch {
    return false
  }
}
