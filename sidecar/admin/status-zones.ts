import type { ServerZone } from '../../feedback/server-zone.ts'
import type { Entry } from './tree.ts'

/** `status_zone` of servers, or of locations, of `http` in the status tree. */
export function* clientZones(zones: ReadonlyMap<string, ServerZone>, ofServers: boolean): Generator<Entry> {
  for (const [name, zone] of zones) {
    yield [
      name,
      () => [
        ...(ofServers ? handshakes(zone) : []),
        [
          'requests',
          () => [
            ['total', zone.total],
            ...(ofServers ? ([['processing', zone.processing]] satisfies Entry[]) : []),
            ['discarded', zone.discarded],
          ],
        ],
        [
          'responses',
          () => [...zone.responses].sort((a, b) => a[0] - b[0]).map(([code, n]) => [String(code), n]),
        ],
        ['data', () => data(zone)],
      ],
    ]
  }
}

/** Angie's words for how sessions ended, and the statuses that they stand for. */
const sessionWords = [
  ['success', 200],
  ['invalid', 400],
  ['forbidden', 403],
  ['internal_error', 500],
  ['bad_gateway', 502],
  ['service_unavailable', 503],
] as const

/** The same of `stream`. */
export function* sessionZones(zones: ReadonlyMap<string, ServerZone>): Generator<Entry> {
  for (const [name, zone] of zones) {
    yield [
      name,
      () => [
        ...handshakes(zone),
        [
          'connections',
          () => [
            ['total', zone.total],
            ['processing', zone.processing],
            ['discarded', zone.discarded],
            // Nothing hands connections on to other listeners.
            ['passed', 0],
          ],
        ],
        [
          'sessions',
          () => {
            const { responses } = zone
            return sessionWords.map(([word, status]): Entry => [word, responses.get(status) ?? 0])
          },
        ],
        ['data', () => data(zone)],
      ],
    ]
  }
}

/** Handshakes of TLS, where it is spoken. */
function handshakes(zone: ServerZone): Entry[] {
  if (!zone.secure) return []
  const words = ['handshaked', 'reuses', 'timedout', 'failed'] as const
  return [['ssl', () => words.map((word) => [word, zone.handshakes(word)])]]
}

function data(zone: ServerZone): Entry[] {
  return [
    ['received', zone.received],
    ['sent', zone.sent],
  ]
}
