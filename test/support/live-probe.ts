import { Call } from '../../feedback/call.ts'
import { Type } from '../../feedback/schema-type.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { Answer, Asking, ProbeKind, Target } from '../../probes/probe.ts'
import { defaultSettings } from '../../sidecar/proxy/settings.ts'

/** An answer of which only what matters has to be said: 200 unless told otherwise. */
export function answered(seen: Partial<Answer> = {}): Answer {
  return {
    failure: undefined,
    passed: undefined,
    status: 200,
    headers: [],
    trailers: [],
    body: '',
    connectMs: 1,
    headerMs: 2,
    responseMs: 3,
    detail: '',
    orders: undefined,
    ...seen,
  }
}

/** A kind that answers as a test says. */
export function scriptedKind(
  check: (target: Target, asking: Asking) => Promise<Answer> | Answer,
  more: Partial<ProbeKind> = {},
): ProbeKind {
  return {
    name: 'scripted',
    summary: '',
    args: Type.Object({}),
    http: true,
    leastInterval: 10,
    async check(target, _args, asking) {
      return check(target, asking)
    },
    ...more,
  }
}

/** What the directive has where nothing is said. */
export const probeDefaults = {
  args: {},
  port: undefined,
  interval: 5000,
  timeout: 1000,
  fails: 1,
  passes: 1,
  essential: false,
  persistent: false,
  mode: 'always',
  scope: 'instance',
  test: undefined,
} satisfies Partial<LiveProbe>

/** A probe of a group, with the defaults of the directive. */
export function liveProbe(upstream: Upstream, kind: ProbeKind, more: Partial<LiveProbe> = {}): LiveProbe {
  const name = more.name ?? 'health'
  return {
    upstream,
    location: '/',
    name,
    kind,
    definition: 'd',
    ...probeDefaults,
    retry: defaultSettings.retry,
    call: () => Object.assign(new Call(), { probe: name }),
    question: () => ({
      method: 'GET',
      target: '/',
      headers: ['Host', 'backend'],
      connectTimeout: 60_000,
      maxHead: 8192,
    }),
    ...more,
  }
}
