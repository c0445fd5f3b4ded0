import type { Row } from './board.ts'
import { actualShare, pickedTime, shadowSame, shadowShare, shadowTime } from './measures.ts'
import { lines } from './panels.ts'

const name = '{{upstream}} {{peer}}'

/** A second method that only says what it would have picked. */
export const shadowRow: Row = {
  title: 'Trying another method (`shadow`)',
  panels: [
    lines({
      title: 'Shares under either method',
      about:
        'Solid: the share of attempts that each peer had. Dashed: the share of picks that the shadow would have given it. Empty for groups without a shadow.',
      span: 12,
      unit: 'percentunit',
      dashed: '/ shadow$/',
      queries: [
        [actualShare(), name],
        [shadowShare, `${name} shadow`],
      ],
      min: 0,
    }),
    lines({
      title: 'Time to expect under either method',
      about:
        'Average time of the peers that were picked, and dashed of those that the shadow would have picked, over the same requests. Dashed below solid: the shadow chooses faster peers. It says nothing of what its choice would do to them.',
      span: 6,
      unit: 's',
      dashed: '/ shadow$/',
      queries: [
        [pickedTime, '{{upstream}}'],
        [shadowTime, '{{upstream}} shadow'],
      ],
      min: 0,
    }),
    lines({
      title: 'Same choice',
      about:
        'Part of the picks in which both methods chose the same peer. Two random methods seldom do, even with equal shares.',
      span: 6,
      unit: 'percentunit',
      queries: [[shadowSame, '{{upstream}}']],
      min: 0,
      max: 1,
    }),
  ],
}
