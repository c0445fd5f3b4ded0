import type { Row } from './board.ts'
import { lines } from './panels.ts'
import { max, min, rate, sum } from './promql.ts'
import { chosen } from './scope.ts'

const ofName = ['name'] as const

/** Whether names of servers still lead somewhere. Empty without `resolve`. */
export const namesRow: Row = {
  title: 'Names of servers',
  panels: [
    lines({
      title: 'Addresses',
      about:
        'That each followed name has, as the instance sees it that sees fewest. At 0 its line of the group has no peer. Empty without `resolve`.',
      span: 6,
      unit: 'short',
      queries: [[min(ofName, chosen('evenkeel_resolver_name_addresses')), '{{name}}']],
      min: 0,
      steps: ['red', [1, 'transparent']],
    }),
    lines({
      title: 'Not found',
      about:
        'Instances whose last look-up did not find the name. The last good addresses stay, unless the answer was that there is no such name.',
      span: 6,
      unit: 'short',
      queries: [[sum(ofName, chosen('evenkeel_resolver_name_failing')), '{{name}}']],
      min: 0,
      steps: ['transparent', [1, 'orange']],
    }),
    lines({
      title: 'Age of the addresses',
      about:
        'Time since they were last heard, by the instance that heard them longest ago: as a rule below the TTL, or `valid=`.',
      span: 6,
      unit: 's',
      queries: [[max(ofName, chosen('evenkeel_resolver_name_age_seconds')), '{{name}}']],
      min: 0,
    }),
    lines({
      title: 'DNS',
      about:
        'A second: names looked up, messages sent for them by type of record, and how those ended. More messages than answers are repeats.',
      span: 6,
      unit: 'ops',
      queries: [
        [sum(['type'], rate(chosen('evenkeel_resolver_queries_total'))), 'looked up, {{type}}'],
        [sum(['type'], rate(chosen('evenkeel_resolver_sent_total'))), 'sent, {{type}}'],
        [sum(['status'], rate(chosen('evenkeel_resolver_responses_total'))), '{{status}}'],
      ],
      min: 0,
    }),
  ],
}
