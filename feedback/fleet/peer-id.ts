import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Address, Peer } from '../peer.ts'

let here: string | undefined

/**
 * Names the network that loopback addresses and sockets of this process belong to: the machine since its last start,
 * and the network namespace in it, which containers of one pod share and pods do not.
 */
export function networkHere(): string {
  here ??= networkOf() ?? hostname()
  return here
}

function networkOf(): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
    // `net:[4026531840]`: the number is the namespace's.
    return `${boot}/${readlinkSync('/proc/self/ns/net').replaceAll(/\D/g, '')}`
  } catch {
    return undefined
  }
}

/** Whether only this machine, or this pod, reaches the address. */
export function isLocal(address: Address): boolean {
  if (address.kind === 'unix') return true
  const host = address.host.toLowerCase()
  return host.startsWith('127.') || host === '::1' || host.startsWith('::ffff:127.') || host === 'localhost'
}

/**
 * What a peer is called in the fleet. `127.0.0.1:8080` is another app in every pod, so the name of a peer that only
 * this network reaches has the network in it.
 */
export function peerId(peer: Pick<Peer, 'name' | 'address'>): string {
  return isLocal(peer.address) ? `${networkHere()} ${peer.name}` : peer.name
}
