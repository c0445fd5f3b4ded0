import type { Socket } from 'node:net'
import { monotonic } from '../../feedback/clock.ts'
import { countAttempt, countCall } from '../../feedback/observe-bytes.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type { ClientCounts } from '../../feedback/tally.ts'
import { afterReading } from '../net/late.ts'
import type { Try } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import type { ForwardEnv } from './forwarded.ts'
import { ClientConnection } from './http1/client-connection.ts'
import { peerLeft, type TryFailure } from './try-failure.ts'

/** Bytes of tunnels are counted so often while they pass, milliseconds. */
const countEveryMs = 1000

/** A tunnel in progress. */
interface OpenTunnel {
  readonly peer: Peer | undefined
  /** Counts what has passed so far. */
  readonly count: () => void
}

/** Tunnels in progress, so that a drain, or the leave of their peers, can end them. */
export class Tunnels {
  /** What counts the client's side of an exchange. */
  zonesOf: (exchange: Exchange) => readonly ServerZone[] = () => []
  /** By what ends them. */
  readonly #open = new Map<() => void, OpenTunnel>()
  readonly #counts: ClientCounts
  #graceMs = 0
  #counting: NodeJS.Timeout | undefined = undefined

  constructor(counts: ClientCounts) {
    this.#counts = counts
  }

  /** Registers a tunnel by what ends it. @returns takes it back */
  add(end: () => void, { peer, count }: OpenTunnel): () => void {
    this.#open.set(end, { peer, count })
    this.#counting ??= setInterval(() => this.#count(), countEveryMs).unref()
    this.#counts.tunnels += 1
    // The peer has left while it was asked.
    if (peer?.dismissed) this.#endLater(end)
    return () => {
      if (this.#open.delete(end)) this.#counts.tunnels -= 1
      if (this.#open.size > 0) return
      clearInterval(this.#counting)
      this.#counting = undefined
    }
  }

  #count(): void {
    for (const { count } of this.#open.values()) count()
  }

  /** Ends every tunnel in order: FIN to both sides. No frame is put into a protocol that is not looked at. */
  end(): void {
    for (const end of [...this.#open.keys()]) end()
  }

  /**
   * Ends those to peers that a reload takes away, in the same way.
   * @param graceMs how long they have until then
   */
  endOf(gone: readonly Peer[], graceMs: number): void {
    this.#graceMs = graceMs
    for (const [end, { peer }] of this.#open) {
      // A reload makes the objects of all peers anew, also of those that stay.
      const is = (one: Peer) => one.name === peer?.name && one.zone.name === peer.zone.name
      if (gone.some(is)) this.#endLater(end)
    }
  }

  #endLater(end: () => void): void {
    setTimeout(() => {
      if (this.#open.has(end)) end()
    }, this.#graceMs).unref()
  }
}

/**
 * Joins client and peer after both agreed to switch protocols: bytes pass both ways as they come, each side waits
 * for the other, and a half-closed side leaves the other one open. Without a byte either way for `proxy_read_timeout` both ends
 * are closed.
 * @param head status line and headers for the client with the final empty line, latin1
 */
export function tunnel(
  exchange: Exchange,
  trial: Try,
  head: string,
  { tunnels, drops }: ForwardEnv,
): Promise<TryFailure | undefined> {
  const { call } = exchange
  const { readTimeout: idleTimeout, dropAfter } = exchange.settings
  const { attempt } = trial
  const { connection } = trial
  const { connection: own } = exchange
  if (!exchange.upgrade || !connection || !(own instanceof ClientConnection)) {
    throw new Error('a tunnel needs an upgrade and two connections of its own')
  }
  const client = own.socket
  const written = client.bytesWritten
  const ahead = own.detach()
  const { socket: peer, first } = connection.detach()
  trial.release()
  const sent = attempt.bytesSent - peer.bytesWritten
  const received = attempt.bytesReceived - peer.bytesRead
  const measure = () => {
    attempt.bytesSent = sent + peer.bytesWritten
    attempt.bytesReceived = received + peer.bytesRead
  }
  const count = () => {
    measure()
    countAttempt(attempt)
    call.bytesSent = exchange.response.bytes + client.bytesWritten - written
    countCall(call, tunnels.zonesOf(exchange))
  }
  return new Promise((resolve) => {
    let over = false
    let cut: TryFailure | undefined
    const finish = (idle = false) => {
      if (over) return
      over = true
      clearTimeout(timer)
      forget()
      drops.delete(leaving)
      measure()
      for (const socket of [client, peer]) {
        // What was written before an orderly end still goes out; a side that takes nothing is not waited for long.
        if (idle) socket.destroy()
        else socket.destroySoon()
        setTimeout(() => socket.destroy(), 5000).unref()
      }
      exchange.tunnelEnded(client.bytesWritten - written)
      resolve(cut)
    }
    let active = monotonic()
    let timer = setTimeout(tick, idleTimeout, false)
    /** @param seen whether what has come meanwhile has been looked at */
    function tick(seen: boolean): void {
      if (over) return
      const left = idleTimeout - (monotonic() - active)
      if (left > 0.5) timer = setTimeout(tick, Math.ceil(left), false)
      else if (seen) finish(true)
      else afterReading(() => tick(true))
    }
    const end = () => {
      // Both sides get a FIN and what was written before it, then the tunnel is over.
      client.end()
      peer.end()
      setTimeout(() => finish(), 250).unref()
    }
    const forget = tunnels.add(end, { peer: attempt.peer, count })
    const leaving = {
      peer: attempt.peer,
      drop() {
        cut = peerLeft
        end()
      },
    }
    if (dropAfter !== undefined) drops.add(leaving, dropAfter, true)
    const pass = (from: Socket, to: Socket, count: (bytes: number) => void) => {
      from.on('data', (chunk: Buffer) => {
        active = monotonic()
        count(chunk.length)
        if (!to.write(chunk)) from.pause()
      })
      to.on('drain', () => from.resume())
      from.on('end', () => {
        to.end()
        if (to.readableEnded || to.destroyed) finish()
      })
      from.on('error', () => finish())
      from.on('close', () => finish())
    }
    client.write(head, 'latin1')
    if (first && first.length > 0) {
      call.bodyBytesSent += first.length
      client.write(first)
    }
    if (ahead) peer.write(ahead)
    pass(client, peer, () => {})
    pass(peer, client, (bytes) => {
      call.bodyBytesSent += bytes
      attempt.bodyLength += bytes
    })
    client.resume()
    peer.resume()
    if (client.destroyed) finish()
    if (peer.destroyed) finish()
  })
}
