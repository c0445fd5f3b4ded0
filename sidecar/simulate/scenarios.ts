/** What befalls a group in a simulation. All moments are seconds from the start, for a run of `seconds`. */
export interface Scenario {
  readonly name: string
  /** One line for the help. */
  readonly summary: string
  /** How long requests come. */
  readonly seconds: number
  /** How many sidecars there are, each with what it has learnt itself. */
  readonly instances: number
  /** Peers are of speeds from 1 to 5, evenly, whatever else is said of them. */
  readonly spread?: true
  /** Between two moments the first peer works at this rate, or answers every request 503 at once. */
  readonly fault?: { readonly from: number; readonly to: number; readonly rate: number | 'failing' }
  /** Every peer stands still for so long, so often, each at a phase of its own. */
  readonly pauses?: { readonly every: number; readonly for: number }
  /** Part of its requests that every peer answers 503 at once, 0 to 1. */
  readonly errors?: number
}

/** Seconds at the start that are not measured, where nothing else says what is. */
export const warmUp = 10

export const scenarios: readonly Scenario[] = [
  {
    name: 'homogeneous',
    summary: 'nothing happens',
    seconds: 60,
    instances: 4,
  },
  {
    name: 'speeds',
    summary: 'peers are of speeds 1 to 5, and together as fast as ever',
    seconds: 90,
    instances: 4,
    spread: true,
  },
  {
    name: 'slow-peer',
    summary: 'one peer works at a tenth of its speed for 30 s',
    seconds: 90,
    instances: 4,
    fault: { from: 30, to: 60, rate: 0.1 },
  },
  {
    name: 'stall',
    summary: 'one peer stands still for 5 s',
    seconds: 60,
    instances: 4,
    fault: { from: 30, to: 35, rate: 0 },
  },
  {
    name: 'failing-peer',
    summary: 'one peer answers 503 in 0.1 ms for 30 s',
    seconds: 90,
    instances: 4,
    fault: { from: 30, to: 60, rate: 'failing' },
  },
  {
    name: 'pauses',
    summary: 'every peer stands still for 200 ms every 10 s, each at a time of its own',
    seconds: 60,
    instances: 4,
    pauses: { every: 10, for: 0.2 },
  },
  {
    name: 'speeds-many',
    summary: 'as speeds, with 20 sidecars that know nothing of one another',
    seconds: 90,
    instances: 20,
    spread: true,
  },
  {
    name: 'stall-many',
    summary: 'as stall, with 20 sidecars',
    seconds: 60,
    instances: 20,
    fault: { from: 30, to: 35, rate: 0 },
  },
  {
    name: 'errors',
    summary: 'every peer answers one request in a hundred 503 in 0.1 ms',
    seconds: 60,
    instances: 4,
    errors: 0.01,
  },
]
