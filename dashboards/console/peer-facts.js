/*
 * What there is to say of a peer, in blocks of pairs: what the page has of it, and what the program answered.
 */

import { h, shape } from './dom.js'
import { ago, bytes, count, counted, duration, percent, rate, setting, span, time } from './format.js'
import { waitNote } from './peer-texts.js'
import { chosen } from './settings.js'
import { attemptReasons, meaning } from './words.js'

/** @typedef {import('./peer.js').Peer} Peer */
/** @typedef {[title: string, text: string | Node | undefined]} Fact undefined: there is nothing to say */

/**
 * All blocks that have anything to say.
 * @param {Peer} peer
 * @param {any} answer of /status; undefined before it came
 */
export function factsOf(peer, answer) {
  const { now } = peer.group.store
  const blocks = [
    atPresent(peer, answer),
    sinceTheStart(peer, answer),
    configured(peer),
    healthOf(peer, answer, now),
    reasons(peer),
    probes(peer, now),
    reportsOf(peer, answer),
    fleetOf(answer),
  ]
  return blocks.filter(({ facts }) => facts.some(([, text]) => text !== undefined)).map(block)
}

/** @param {Peer} peer @param {any} answer */
function atPresent(peer, answer) {
  const { isStream } = peer.group
  const told = answer?.evenkeel ?? {}
  const limit = peer.number('maxConns') ?? 0
  const ramp = peer.number('ramp') ?? 1
  /** @type {Fact[]} */
  const facts = [
    [
      'State',
      `${peer.state}${peer.stateAt === undefined ? '' : ` for ${span(peer.group.store.now - peer.stateAt)}`}`,
    ],
    ['Gets nothing', peer.excluded && h('span', {}, word(peer.excluded), ` ${meaning(peer.excluded) ?? ''}`)],
    ['Chance now', percent(peer.number('share'))],
    ['In flight', `${count(peer.number('inFlight') ?? 0)}${limit > 0 ? ` of ${count(limit)}` : ''}`],
    ['Without a header', peer.waiting > 0 ? count(peer.waiting) : undefined],
    ['Stalled', waitNote(peer) || undefined],
    [
      'Waiting',
      told.waiting > 0 ? `${count(told.waiting)}, for ${duration(told.waiting_age)} in all` : undefined,
    ],
    ['Average', moving(peer.number('average'), 'of what the method learns, at its own pace')],
    ['Expected', peer.number('expected') === undefined ? undefined : duration(peer.number('expected'))],
    ['Connecting, average', moving(peer.number('connectTime'), fadingSessions)],
    [
      isStream ? 'First byte, average' : 'Header, average',
      moving(peer.number('headerTime'), isStream ? fadingSessions : fading),
    ],
    [
      isStream ? 'Length, average' : 'Response, average',
      moving(peer.number('responseTime'), isStream ? fadingSessions : fading),
    ],
    ['Succeeds', percent(peer.number('ok'))],
    ['Slow start', ramp < 1 ? `at ${percent(ramp)} of its weight` : undefined],
  ]
  return { title: 'Now', facts }
}

/** @param {Peer} peer @param {any} answer */
function sinceTheStart(peer, answer) {
  const told = answer ?? {}
  const reuses = peer.number('reuses') ?? 0
  const connects = peer.number('connects') ?? 0
  const answers = Object.entries(told.responses ?? {}).map(([code, n]) => `${code}: ${count(Number(n))}`)
  /** @type {Fact[]} */
  const facts = [
    ['Attempts', count(peer.number('attempts') ?? 0)],
    ['Ended well', count(peer.number('succeeded') ?? 0)],
    ['Failed', count(peer.number('failures') ?? 0)],
    ['Answers', answers.length > 0 ? answers.join(', ') : undefined],
    ['Sent', told.data && bytes(told.data.sent)],
    ['Received', told.data && bytes(told.data.received)],
    [
      'Connections',
      connects + reuses > 0 && !peer.group.isStream
        ? `${percent(reuses / (reuses + connects))} of the attempts on kept ones`
        : undefined,
    ],
    [
      'To connect',
      connects > 0 ? `${duration((peer.number('connectMs') ?? 0) / connects)} on average` : undefined,
    ],
    ['Last picked', told.selected?.last === undefined ? undefined : time(told.selected.last * 1000)],
    ['To explore', told.evenkeel?.explored > 0 ? count(told.evenkeel.explored) : undefined],
    ['Without an average', told.evenkeel?.unmeasured > 0 ? count(told.evenkeel.unmeasured) : undefined],
    [
      'By the method beside',
      peer.group.layout.shadow === undefined ? undefined : `${count(peer.number('shadowPicks') ?? 0)} picks`,
    ],
  ]
  return { title: 'Since the start', facts }
}

/** @param {Peer} peer @param {any} answer @param {number} now */
function healthOf(peer, answer, now) {
  const health = answer?.health ?? {}
  // While it is away that goes on since the program was asked.
  const since = health.downstart === undefined ? 0 : Math.max(0, now - answer.askedAt)
  const away = (health.downtime ?? 0) + since
  const last = peer.lastFailure
  /** @type {Fact[]} */
  const facts = [
    ['Set aside', health.unavailable === undefined ? undefined : counted(health.unavailable, 'time')],
    ['Away in all', away > 0 ? duration(away) : undefined],
    ['Away since', health.downstart === undefined ? undefined : time(health.downstart * 1000)],
    [
      'Failures now',
      peer.layout.maxFails > 0 ? `${count(peer.number('fails') ?? 0)} of ${peer.layout.maxFails}` : undefined,
    ],
    ['Last failure', last && h('span', {}, word(last.reason), ` ${ago(now - last.at)}`)],
    [
      'By probes',
      answer?.evenkeel?.probes?.unhealthy > 0
        ? `taken out ${counted(answer.evenkeel.probes.unhealthy, 'time')}`
        : undefined,
    ],
  ]
  return { title: 'Health', facts }
}

/** @param {Peer} peer @param {any} answer */
function reportsOf(peer, answer) {
  const report = answer?.evenkeel?.report
  const agent = answer?.evenkeel?.agent
  const value = peer.number('report')
  const ignored = Object.entries(report?.ignored ?? {}).map(([reason, n]) => `${reason} ${count(Number(n))}`)
  const counts = peer.number('reportCounts') === 1
  /** @type {Fact[]} */
  const facts = [
    [
      'Reports',
      report === undefined
        ? undefined
        : value === undefined
          ? 'nothing yet'
          : `${value}, ${ago(peer.number('reportAge'))}${counts ? '' : ', which does not count'}`,
    ],
    ['Not taken', ignored.length > 0 ? ignored.join(', ') : undefined],
    [
      'Agent',
      agent &&
        `${agent.state}, ${percent(agent.weight)} of its weight${agent.max_conns === undefined ? '' : `, at most ${agent.max_conns}`}`,
    ],
  ]
  return { title: 'What it says of itself', facts }
}

/** @param {any} answer */
function fleetOf(answer) {
  const fleet = answer?.fleet
  /** @type {Fact[]} */
  const facts =
    fleet === undefined
      ? []
      : [
          ['Instances', count(fleet.members)],
          ['In flight', count(fleet.current)],
          [
            'Answers',
            `${count(fleet.answers)}${fleet.answers > 0 ? `, ${percent(fleet.good / fleet.answers)} good` : ''}`,
          ],
          ['Average', fleet.avg === undefined ? undefined : duration(fleet.avg)],
          [
            'Stuck elsewhere',
            fleet.stuck > 0 ? `${count(fleet.stuck)}, for ${duration(fleet.stuck_age)} in all` : undefined,
          ],
          [
            'Lease',
            fleet.lease === undefined ? undefined : `${count(fleet.lease)} of max_conns for this instance`,
          ],
          ['Set aside', fleet.unavailable > 0 ? counted(fleet.unavailable, 'time') : undefined],
        ]
  return { title: 'In the fleet', facts }
}

/** @param {Peer} peer */
function configured({ layout }) {
  /** @type {Fact[]} */
  const facts = [
    ['Server', layout.server],
    ['Track', layout.track],
    ['Weight', String(layout.weight)],
    ['Backup', layout.backup ? 'yes' : undefined],
    [
      'Failures',
      layout.maxFails === 0
        ? 'never set it aside'
        : `${layout.maxFails} within ${setting(layout.failTimeout)} set it aside`,
    ],
    ['Slow start', layout.slowStart > 0 ? setting(layout.slowStart) : undefined],
  ]
  return { title: 'Configured', facts }
}

/** @param {Peer} peer */
function reasons(peer) {
  const ms = chosen().span
  /** @type {Fact[]} */
  const facts = [...peer.reasons]
    .sort((a, b) => b[1] - a[1])
    .map(([reason, n]) => {
      const now = peer.rate(`reason ${reason}`, ms) ?? 0
      return [
        reason,
        h(
          'span',
          {},
          count(n),
          now > 0 ? `, ${rate(now)}/s` : '',
          h('small', {}, ` ${attemptReasons[reason] ?? ''}`),
        ),
      ]
    })
  return { title: 'Why attempts did not end well', facts }
}

/** @param {Peer} peer @param {number} now */
function probes(peer, now) {
  /** @type {Fact[]} */
  const facts = [...peer.probes.values()].map((about) => {
    const { probe, passed, detail, at, tookMs, fails, passes, nextAt, shared, by, leavesMs } = about
    const look = passed === undefined ? 'silent' : passed ? 'passed' : 'failed'
    const streak =
      passed === false
        ? `${fails} failed in a row, ${probe.fails} take it out`
        : `${passes} passed in a row, ${probe.passes} bring it back`
    const parts = [
      at === undefined
        ? 'not asked yet'
        : `${ago(now - at)}${tookMs === undefined ? '' : `, took ${duration(tookMs)}`}`,
      at === undefined ? '' : streak,
      detail,
      by === undefined ? '' : `asked by ${by}`,
      nextAt > now ? `next in ${span(nextAt - now)}` : 'due now',
      leavesMs > 0 ? `left to the others for ${span(leavesMs)}` : '',
      shared ? 'asked for the fleet' : '',
      `${probe.type} every ${setting(probe.interval)} in ${probe.location}${probe.essential ? ', essential' : ''}`,
    ]
    return [
      probe.name,
      h(
        'span',
        { class: 'probe', 'data-look': look },
        shape(look),
        h('span', {}, parts.filter((part) => part !== '').join('; ')),
      ),
    ]
  })
  return { title: 'Probes', facts }
}

/** @param {string} text */
function word(text) {
  return h('span', { class: 'word', tabindex: '0', 'data-word': text }, text)
}

/** @param {{ title: string, facts: Fact[] }} about */
function block({ title, facts }) {
  const pairs = facts.flatMap(([name, text]) =>
    text === undefined ? [] : [h('dt', {}, name), h('dd', {}, text)],
  )
  return h('section', { class: 'block' }, h('h3', {}, title), h('dl', { class: 'pairs' }, ...pairs))
}

/** What the averages for the status tree go by. */
const fading = 'of good answers; an old one fades by response_time_factor, with each new one alone'

const fadingSessions = 'of sessions; an old one fades by response_time_factor, with each new one alone'

/**
 * A moving average, and what moves it: two of them may differ a lot, as each forgets in its own way.
 * @param {number | undefined} ms 0 says that there is none yet
 * @param {string} how
 */
function moving(ms, how) {
  return ms ? h('span', {}, duration(ms), h('small', {}, ` ${how}`)) : undefined
}
