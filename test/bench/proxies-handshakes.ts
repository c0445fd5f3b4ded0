import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'
import { monotonic } from '../../feedback/clock.ts'
import { cpuMicros, residentBytes } from './proxies-process.ts'
import type { Turn, TurnOptions } from './proxies-turn.ts'

const request = 'GET /small HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'
/** How long an answer may take, milliseconds. */
const patienceMs = 10_000

/** A TLS connection for one request, with a whole handshake. @throws unless it is answered with 200, and closed */
function once(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    // As h2load has it: the same key exchange and cipher with every proxy.
    const socket = connect({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519',
      ciphers: 'TLS_AES_128_GCM_SHA256',
    })
    socket.setTimeout(patienceMs, () => socket.destroy(new Error('no answer in time')))
    socket.once('secureConnect', () => socket.write(request))
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part
    })
    socket.once('error', reject)
    socket.once('end', () => {
      socket.destroy()
      if (text.startsWith('HTTP/1.1 200 ')) resolve()
      else reject(new Error(`an answer that begins ${JSON.stringify(text.slice(0, 40))}`))
    })
  })
}

/** One turn of so many at once, each of which connects anew when it has its answer. */
export async function handshakesTurn(
  port: number,
  atOnce: number,
  { ms, pids }: Pick<TurnOptions, 'ms' | 'pids'>,
): Promise<Turn> {
  const own = process.cpuUsage()
  const cpu = cpuMicros(pids)
  const begun = monotonic()
  const times: number[] = []
  const loop = async () => {
    while (monotonic() < begun + ms) {
      const since = monotonic()
      await once(port)
      times.push(monotonic() - since)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
  const ended = monotonic()
  const used = process.cpuUsage(own)
  // What closing costs the proxy belongs to it.
  await sleep(10)
  const sorted = Float64Array.from(times).sort()
  return {
    requests: times.length,
    ms: ended - begun,
    cpuMicros: cpuMicros(pids) - cpu,
    loadMicros: used.user + used.system,
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    residentBytes: residentBytes(pids),
  }
}
