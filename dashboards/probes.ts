import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './board.ts'
import { headerTime, probeFailureRatio, stateOf } from './measures.ts'
import { lines, stateMappings, states } from './panels.ts'
import { also, avg, type Expr, increase, max, min, rate, rateInterval, sum, where } from './promql.ts'
import { chosen } from './scope.ts'
import { table } from './tables.ts'

const ofPeer = ['upstream', 'peer'] as const
const name = '{{upstream}} {{peer}}'
/** Each instance counts what it has heard of, so with a fleet all of them count the same probes. */
const byInstance = ['namespace', 'instance', 'upstream', 'peer'] as const
const probes = max(ofPeer, sum(byInstance, rate(chosen('evenkeel_peer_probes_total'))))
const found = (window: string) =>
  max(ofPeer, sum(byInstance, increase(chosen('evenkeel_peer_unhealthy_total'), window)))
/** Only peers that are probed. */
const probed = (of: Expr) => also(of, ofPeer, where(max(ofPeer, chosen('evenkeel_peer_probes_total')), '> 0'))
const took = avg(ofPeer, chosen('evenkeel_peer_probe_seconds'))
// With a fleet one instance asks for all, so the youngest answer is what all know.
const age = min(ofPeer, chosen('evenkeel_peer_probe_age_seconds'))

export function probesBoard(): Dashboard {
  return board({
    uid: 'evenkeel-probes',
    title: 'evenkeel / Probes',
    about: 'Who is asked how often, what comes of it, and who is out for it.',
    choices: ['upstream', 'peer', 'track'],
    rows: [
      {
        title: 'Rate, errors, duration',
        panels: [
          lines({
            title: 'Probes',
            about:
              'Probes of each peer a second, as the instance counts them that knows of most. With a fleet that is all there are: a peer is asked once an interval by all together.',
            span: 8,
            unit: 'ops',
            queries: [[probes, name]],
            min: 0,
          }),
          lines({
            title: 'Probes that did not pass',
            about: 'Part of all probes. `fails` of them in a row take the peer out, `passes` bring it back.',
            span: 8,
            unit: 'percentunit',
            queries: [[probeFailureRatio(ofPeer), name]],
            min: 0,
            max: 1,
          }),
          lines({
            title: 'Time that the last probe took',
            about:
              'Dashed: what clients’ attempts took to the header. A probe that is fast where clients wait asks the wrong question, or the peer queues.',
            span: 8,
            unit: 's',
            dashed: '/ clients$/',
            queries: [
              [took, name],
              [headerTime(ofPeer), `${name} clients`],
            ],
            min: 0,
          }),
        ],
      },
      {
        title: 'What comes of it',
        panels: [
          states({
            title: 'State of each peer',
            about:
              'The worst that any instance sees. `checking`: an essential probe has yet to pass; `unhealthy`: probes failed; `draining` and `down` may be an agent’s word.',
            span: 12,
            height: 10,
            mappings: stateMappings,
            queries: [[stateOf(ofPeer), name]],
          }),
          lines({
            title: 'Found unhealthy',
            about: 'How often each peer was taken out by probes, in the interval of each bar.',
            span: 6,
            height: 10,
            unit: 'short',
            bars: true,
            queries: [[found(rateInterval), name]],
            min: 0,
          }),
          lines({
            title: 'Time out of service',
            about: 'Part of the time that each peer was unavailable, by the instance that saw most of it.',
            span: 6,
            height: 10,
            unit: 'percentunit',
            queries: [[max(ofPeer, rate(chosen('evenkeel_peer_downtime_seconds_total'))), name]],
            min: 0,
            max: 1,
          }),
        ],
      },
      {
        title: 'Peer by peer',
        panels: [
          table({
            title: 'Peers that are probed',
            about:
              'Now, and over the time shown. `curl ADMIN/explain/UPSTREAM?format=text` says how the last probe of each ended and why.',
            span: 24,
            height: 8,
            rows: ofPeer,
            sort: 'Failed',
            columns: [
              { title: 'State', expr: probed(stateOf(ofPeer)), unit: 'short', mappings: stateMappings },
              { title: 'Probes', expr: probed(probes), unit: 'ops' },
              {
                title: 'Failed',
                expr: probed(probeFailureRatio(ofPeer)),
                unit: 'percentunit',
                steps: ['green', [0.01, 'yellow'], [0.5, 'red']],
              },
              { title: 'Last took', expr: probed(took), unit: 's' },
              { title: 'Last ended', expr: probed(age), unit: 's' },
              {
                title: 'Found unhealthy',
                expr: probed(found('$__range')),
                unit: 'short',
                decimals: 0,
                steps: ['green', [1, 'orange']],
              },
              {
                title: 'Weight by its agent',
                expr: probed(min(ofPeer, chosen('evenkeel_peer_agent_weight_ratio'))),
                unit: 'percentunit',
                steps: ['orange', [1, 'green']],
              },
            ],
          }),
        ],
      },
      {
        title: 'Who asks',
        panels: [
          lines({
            title: 'Age of the last probe',
            about:
              'Time since a probe ended, of any instance. It should stay below the interval; with `mode=idle` or `onfail` it may not.',
            span: 8,
            unit: 's',
            queries: [[age, name]],
            min: 0,
          }),
          lines({
            title: 'Probes by instance',
            about:
              'Results a second that each instance has heard of. Without a fleet those are its own; with one, everybody’s.',
            span: 8,
            unit: 'ops',
            queries: [[sum(['instance'], rate(chosen('evenkeel_peer_probes_total'))), '{{instance}}']],
            min: 0,
          }),
          lines({
            title: 'Weight that agents leave',
            about: 'Part of the configured weight. 1 where no agent has asked for less.',
            span: 8,
            unit: 'percentunit',
            queries: [[min(ofPeer, chosen('evenkeel_peer_agent_weight_ratio')), name]],
            min: 0,
          }),
        ],
      },
    ],
  })
}
