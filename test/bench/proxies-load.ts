import { h2loadTurn, type Target } from './proxies-h2load.ts'
import { handshakesTurn } from './proxies-handshakes.ts'
import { startPeer } from './proxies-peer.ts'
import { type AskName, asks, type Front } from './proxies-scenarios.ts'
import { Connections, type Turn, type TurnOptions } from './proxies-turn.ts'

/*
 * Load and peer in one process of its own, on the core that no proxy is on. It is told what to do over the channel to
 * the process that started it.
 */

/** What the process can be told; `id` comes back with the answer. */
export type Order =
  | { readonly id: number; readonly open: { port: number; ask: AskName; connections: number; front?: Front } }
  | { readonly id: number; readonly measure: TurnOptions & { port: number } }
  | { readonly id: number; readonly close: { port: number } }

export type Reply =
  | { readonly peerPort: number }
  | { readonly id: number; readonly turn?: Turn }
  | { readonly id: number; readonly error: string }

/** Connections, or what h2load opens some to, by the port of the proxy. */
const open = new Map<number, Connections | Target>()

async function obey(order: Order): Promise<Turn | undefined> {
  if ('open' in order) {
    const { port, ask, connections, front } = order.open
    if (front) {
      open.set(port, { port, front, connections })
      return undefined
    }
    const made = new Connections()
    open.set(port, made)
    await made.open(port, asks[ask], connections)
    return undefined
  }
  if ('measure' in order) {
    const connections = open.get(order.measure.port)
    if (!connections) throw new Error('no connections are open')
    if (connections instanceof Connections) return connections.measure(order.measure)
    return connections.front.once
      ? handshakesTurn(connections.port, connections.connections, order.measure)
      : h2loadTurn(connections, order.measure)
  }
  const made = open.get(order.close.port)
  if (made instanceof Connections) made.close()
  open.delete(order.close.port)
  return undefined
}

function reply(message: Reply): void {
  process.send?.(message)
}

if (import.meta.main) {
  process.on('message', (order: Order) => {
    obey(order).then(
      (turn) => reply(turn ? { id: order.id, turn } : { id: order.id }),
      (error: unknown) =>
        reply({ id: order.id, error: error instanceof Error ? error.message : String(error) }),
    )
  })
  process.on('disconnect', () => process.exit())
  const { port } = await startPeer()
  reply({ peerPort: port })
}
