import {
  type ListSwitchEvent,
  listSwitchChannel,
  type SessionsFullEvent,
  sessionsFullChannel,
} from '../../feedback/channels.ts'
import type { Line } from './attempt-lines.ts'
import { type ErrorLog, errorLog } from './error-log.ts'

/** The line of a group whose requests go to another list of peers first. */
export function describeSwitch({ upstream, to }: ListSwitchEvent): Line {
  const level = to === 'backups' ? 'warn' : 'notice'
  return { level, text: `upstream "${upstream.name}" switched to its ${to}` }
}

/** The line of a table of sessions that has no room for more. */
export function describeFull({ group, zone, dropped }: SessionsFullEvent): Line {
  const sessions = dropped === 1 ? 'the session that was' : `the ${dropped} sessions that were`
  return {
    level: 'warn',
    text: `sticky learn zone "${zone}" of upstream "${group}" is full: ${sessions} left alone longest gave way to others`,
  }
}

/**
 * Writes a line of each of these.
 * @returns stops that
 */
export function logGroups(log: ErrorLog = errorLog): () => void {
  // Each channel is published with its own payload alone.
  const switched = (message: unknown) => {
    const { level, text } = describeSwitch(message as ListSwitchEvent)
    log.log(level, text)
  }
  const full = (message: unknown) => {
    const { level, text } = describeFull(message as SessionsFullEvent)
    log.log(level, text)
  }
  listSwitchChannel.subscribe(switched)
  sessionsFullChannel.subscribe(full)
  return () => {
    listSwitchChannel.unsubscribe(switched)
    sessionsFullChannel.unsubscribe(full)
  }
}
