import type { UpstreamFacts } from './facts.ts'
import { rounded } from './tree.ts'

/** What a method that is tried would do now, and what it would have done since it is tried. Times in milliseconds. */
export interface ShadowExplanation {
  /** With its arguments: `least_time header best`. */
  readonly method: string
  /** Pairs of picks, the own method's and its, of which both peers' average times are known. */
  readonly picks: number
  /** Part of these pairs that fell on the same peer, 0 to 1; undefined before the first. */
  readonly same: number | undefined
  /** Average time of the peers that were picked, and of those that it would have picked; undefined before the first. */
  readonly picked: number | undefined
  readonly instead: number | undefined
  /** The primaries in order. */
  readonly peers: readonly ShadowPeer[]
}

export interface ShadowPeer {
  readonly peer: string
  /** Chance that it would pick the peer next, and that the own method does. */
  readonly share: number
  readonly own: number
  /** All its picks that fell on the peer, whether times are known or not. */
  readonly picks: number
  /** What it expects an answer to take; undefined where it does not estimate. */
  readonly expected: number | undefined
}

/**
 * @param primary the primaries' shares now, under the own method
 * @returns undefined where no method is tried
 */
export function explainShadow(
  { shadow, upstream }: UpstreamFacts,
  primary: readonly number[],
  now: number,
): ShadowExplanation | undefined {
  if (shadow === undefined) return undefined
  const { words, picks, same, pickedMs, shadowMs } = shadow
  const shares = shadow.shares(now)
  const average = (total: number) => (picks > 0 ? rounded(total / picks) : undefined)
  const peers = upstream.peers.map((peer, i): ShadowPeer => {
    const expected = shadow.expected(peer, now)
    return {
      peer: peer.name,
      share: rounded(shares[i] ?? 0),
      own: rounded(primary[i] ?? 0),
      picks: shadow.picksOf(peer),
      expected: expected === undefined ? undefined : rounded(expected),
    }
  })
  const [picked, instead] = [average(pickedMs), average(shadowMs)]
  return { method: words, picks, same: average(same), picked, instead, peers }
}

/** The same for people, a line each. */
export function* shadowLines(about: ShadowExplanation): Generator<string> {
  const { method, picks, same, picked, instead, peers } = about
  const all = peers.reduce((sum, one) => sum + one.picks, 0)
  yield `shadow ${method}: ${all} picks in all`
  for (const { peer, share, own, picks: count, expected } of peers) {
    const past = all > 0 ? `, ${percent(count / all)} so far` : ''
    const time = expected === undefined ? '' : `, ${expected} ms expected`
    yield `  ${peer}: ${percent(share)} instead of ${percent(own)}${past}${time}`
  }
  if (same === undefined || picked === undefined || instead === undefined) return
  const change = picked > 0 ? ` (${instead < picked ? '' : '+'}${percent(instead / picked - 1)})` : ''
  const pairs = `${picks} pairs with the pick that was sent, both peers' times known`
  const times = `by these averages ${instead} ms instead of ${picked} ms${change}`
  yield `  ${pairs}: ${percent(same)} fell on the same peer; ${times}`
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`
}
