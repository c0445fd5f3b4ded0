/*
 * What scripted peers do, and how they tell of it. Peers are other processes: all times are the kernel's monotonic
 * clock, which is the same for all of them.
 */

/** Milliseconds of the clock that all processes of the machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** How a peer behaves towards requests until it is told otherwise. */
export const moods = [
  'well',
  'slow',
  'status_500',
  'status_503',
  'reset',
  'close',
  'garbage',
  'huge_head',
  'stall',
  'cut',
  'short',
  'hangup',
] as const
export type Mood = (typeof moods)[number]

export function isMood(word: string): word is Mood {
  return moods.some((mood) => mood === word)
}

/** What became of one request at a peer. */
export interface Deed {
  /** The request's name. */
  readonly id: string
  readonly peer: string
  /**
   * `answered`: all of the answer was handed to the kernel. `gone`: the other side ended the connection first. The
   * others are faults, done on purpose.
   */
  readonly did:
    | 'answered'
    | 'gone'
    | 'reset'
    | 'close'
    | 'garbage'
    | 'huge_head'
    | 'stall'
    | 'cut'
    | 'short'
    | 'tunnel'
  /** Status of the answer, where its head was sent. */
  readonly status: number | undefined
  /** Whether the request's body was the one that the client has sent; undefined where it was not read to its end. */
  readonly bodyGood: boolean | undefined
  /** When the request's head had come, and when this was over. */
  readonly from: number
  readonly to: number
}

/** What a process of peers tells. */
export type PeerTells =
  | { readonly kind: 'listening'; readonly addresses: Readonly<Record<string, string>> }
  | { readonly kind: 'deeds'; readonly deeds: readonly Deed[] }
  /** A request that asked for it has come. */
  | { readonly kind: 'came'; readonly id: string }
  /** A peer has ended connections at which no request was, has closed its port, or opened it again. */
  | { readonly kind: 'hung_up' | 'shut' | 'open'; readonly peer: string; readonly at: number }

/** What it is told. */
export type PeerOrder =
  | { readonly kind: 'mood'; readonly peer: string; readonly mood: Mood }
  | { readonly kind: 'shut' | 'open'; readonly peer: string }
  /** From now on one request is answered badly, and the deed is told as a good one: the harness has to notice. */
  | { readonly kind: 'lie' }
