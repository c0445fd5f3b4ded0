import { Type } from '../../../feedback/schema-type.ts'
import { directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { integer, time } from '../schema.ts'
import { timeMs } from '../units.ts'

/** What a group does when none of its peers, or none of its primaries, is ready. */
export const waitingDirectives = [
  directive({
    name: 'queue',
    in: ['upstream'],
    doc: 'How many requests may wait in each thread when no peer is ready, and for how long. Without this line none.',
    default: 'timeout=60s',
    args: Type.Object({ number: integer(1), timeout: Type.Optional(time) }),
    words: ['number'],
    wrong: (number) => `invalid value "${number}" in "queue" directive`,
    tidy(queue) {
      if (queue.timeout !== undefined && timeMs(queue.timeout) === 0) {
        throw new Fault(`invalid parameter "timeout=${queue.timeout}"`, 'timeout')
      }
      return queue
    },
  }),
  directive({
    name: 'backup_switch',
    in: ['upstream', 'stream upstream'],
    doc:
      'Goes on with the backups once they have taken over, until they have nobody ready; ' +
      'with a time the primaries are tried again so long after the switch.',
    syntax: 'backup_switch permanent[=TIME];',
    args: Type.Object({ permanent: Type.Union([Type.Literal(true), time]) }),
    split(words) {
      const [word = ''] = words
      if (words.length !== 1) throw new Fault('invalid number of arguments in "backup_switch" directive')
      if (word === 'permanent') return { permanent: 'true' }
      if (!word.startsWith('permanent=') || word.endsWith('=true')) {
        throw new Fault(`invalid parameter "${word}"`)
      }
      return { permanent: word.slice('permanent='.length) }
    },
    tidy(value) {
      if (typeof value.permanent === 'string' && timeMs(value.permanent) === 0) {
        throw new Fault(`invalid parameter "permanent=${value.permanent}"`, 'permanent')
      }
      return value
    },
  }),
]
