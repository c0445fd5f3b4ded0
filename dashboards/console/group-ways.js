/*
 * What has a say in where a request goes beside the method: the queue, sessions that stay with their peers, the list that
 * comes first, and the names behind the peers. A line each, where the group has it.
 */

import { setAttribute, setHidden, setText } from './dom.js'
import { ago, count, counted, duration, percent, rate, setting, span } from './format.js'
import { note } from './note.js'
import { chosen } from './settings.js'

/** @typedef {import('./group.js').Group} Group */

export class GroupWays {
  /** @type {Group} */
  #group
  #queue = note('Queue')
  #sticky = note('Sessions')
  #list = note('Lists')
  #names = note('Names')
  elements

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    this.elements = [this.#queue, this.#sticky, this.#list, this.#names].map(({ element }) => element)
  }

  update() {
    const { state, layout } = this.#group
    show(this.#queue, layout.queue && state?.queue && queueText(this.#group, layout.queue, state.queue))
    show(this.#sticky, layout.sticky && state?.sticky && stickyText(this.#group, layout.sticky, state.sticky))
    show(
      this.#list,
      layout.backupSwitch && state?.list && listText(layout.backupSwitch, state.list, this.#group),
    )
    show(this.#names, layout.names && state?.names && namesText(layout.names, state.names))
  }
}

/** @typedef {{ text: string, about: string, trouble: boolean }} Said */

/**
 * @param {ReturnType<typeof note>} line
 * @param {Said | undefined} said undefined hides it
 */
function show({ element, body }, said) {
  setHidden(element, said === undefined)
  if (said === undefined) return
  setText(body, said.text)
  setAttribute(element, 'data-tip', said.about)
  setAttribute(element, 'data-trouble', said.trouble ? 'yes' : undefined)
}

/**
 * @param {Group} group
 * @param {{ number: number, timeout: number }} limits
 * @param {[number, number, number, number, number, number]} told
 * @returns {Said}
 */
function queueText(group, { number, timeout }, [waiting, queued, dropped, timedout, overflows, waited]) {
  const ms = chosen().span
  const came = group.rate('queued', ms) ?? 0
  const mean = group.mean('queueMs', 'queued', ms)
  const over = queued - waiting
  const parts = [`${count(waiting)} waiting`]
  if (came > 0) parts.push(`${rate(came)}/s come, ${duration(mean)} each`)
  else if (over > 0) parts.push(`${count(queued)} have waited, ${duration(waited / over)} each`)
  if (dropped > 0) parts.push(`${count(dropped)} left`)
  if (timedout > 0) parts.push(`${count(timedout)} waited too long`)
  if (overflows > 0) parts.push(`${count(overflows)} found it full`)
  const vain = (group.rate('queueTimedout', ms) ?? 0) + (group.rate('queueOverflows', ms) ?? 0)
  return {
    text: parts.join(', '),
    about: `Requests for which no peer was ready wait for one: at most ${number} in each thread, for ${setting(timeout)}. Who finds it full, or waits too long, gets 502.`,
    trouble: vain > 0,
  }
}

const stickyModes = {
  cookie: 'a cookie names the peer',
  route: 'a variable names the peer',
  learn: 'sessions are learnt from what passes',
}

/**
 * @param {Group} group
 * @param {NonNullable<import('./told.js').GroupLayout['sticky']>} rules
 * @param {[number, number, number, number | null, number | null]} told
 * @returns {Said}
 */
function stickyText(group, { mode, strict, capacity, timeout }, [fresh, hit, miss, known, evicted]) {
  const ms = chosen().span
  const [news, hits, misses] = ['stickyNew', 'stickyHit', 'stickyMiss'].map(
    (name) => group.rate(name, ms) ?? 0,
  )
  const bound = hits + misses
  const now = bound > 0 ? `${percent(hits / bound)} of the bound ones stayed` : ''
  const parts = [`${count(fresh)} new, ${count(hit)} hits, ${counted(miss, 'miss', 'misses')}`]
  if (news + bound > 0) parts.push(`${rate(news + bound)}/s now${now === '' ? '' : `, ${now}`}`)
  if (known !== null && capacity !== undefined) parts.push(`${count(known)} of ${count(capacity)} known`)
  if (evicted) parts.push(`${count(evicted)} dropped for want of room`)
  const lasts = timeout === undefined ? '' : ` One that nobody uses is forgotten after ${setting(timeout)}.`
  const otherwise = strict ? 'it is refused' : 'it goes where the method has it'
  return {
    text: parts.join('; '),
    about: `Sessions stay with their peer: ${stickyModes[mode]}. Where that peer cannot take a request (a miss), ${otherwise}.${lasts}`,
    trouble: (group.rate('evicted', ms) ?? 0) > 0,
  }
}

/**
 * @param {{ after?: number }} rule
 * @param {[number, number | null, number, number | null]} told
 * @param {Group} group
 * @returns {Said}
 */
function listText({ after }, [backups, returns, switches, at], group) {
  const parts = [backups ? 'the backups come first' : 'the primaries come first']
  if (backups && returns !== null)
    parts.push(`the primaries are tried ${returns === 0 ? 'with the next one' : `again in ${span(returns)}`}`)
  if (at !== null)
    parts.push(`${counted(switches, 'switch', 'switches')}, the last ${ago(group.store.now - at)}`)
  const back =
    after === undefined
      ? 'Nobody tries the primaries before the backups have nobody.'
      : `${setting(after)} after a switch the primaries are tried again.`
  return {
    text: parts.join(', '),
    about: `backup_switch: who was found last comes first. ${back}`,
    trouble: backups === 1,
  }
}

/**
 * @param {string[]} names
 * @param {[number, number | null, string | null][]} told
 * @returns {Said}
 */
function namesText(names, told) {
  const texts = names.map((name, i) => {
    const [addresses, age, error] = told[i] ?? [0, null, null]
    const heard = age === null ? 'never heard' : `heard ${ago(age)}`
    const what = `${name}: ${counted(addresses, 'address', 'addresses')}, ${heard}`
    return error === null ? what : `${what}; ${error}`
  })
  return {
    text: texts.join(' · '),
    about:
      'Names of servers whose addresses are followed. Where one cannot be looked up its last addresses stay.',
    trouble: told.some(([addresses, , error]) => addresses === 0 || error !== null),
  }
}
