import { bytes, lowerCase } from '../../feedback/bytes.ts'
import type { Call } from '../../feedback/call.ts'
import { SessionBook } from '../../feedback/sessions/book.ts'
import type { Sessions } from '../../feedback/sessions/sessions.ts'
import { cookie } from '../../feedback/variables/prefixed.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { StickyRules } from '../balance/sticky/sticky.ts'
import type { CookieRules } from '../balance/sticky/sticky-cookie.ts'
import type { StickyCookie, StickyLearn } from '../config/sticky-model.ts'
import { timeMs } from '../config/units.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'
import type { LiveGroup } from './groups.ts'
import { PartError } from './place.ts'
import type { Plan } from './plans.ts'

/** `sticky learn` where it stands. */
export function learnOf({ sticky }: UpstreamBlock): StickyLearn | undefined {
  return sticky !== undefined && 'learn' in sticky ? sticky.learn : undefined
}

/**
 * A table of sessions stays with its group over reloads.
 * @param old the groups that run now
 * @throws PartError
 */
export function checkTables(plans: readonly Plan[], old: Iterable<LiveGroup>): void {
  const owners = new Map<string, LiveGroup>()
  for (const group of old) {
    const { sessions } = group.balancing.upstream
    if (sessions !== undefined) owners.set(sessions.table.name, group)
  }
  for (const { name, block } of plans) {
    const zone = learnOf(block)?.zone.name
    const owner = zone === undefined ? undefined : owners.get(zone)?.balancing.upstream.name
    if (owner === undefined || owner.toLowerCase() === name.toLowerCase()) continue
    throw new PartError(
      `sticky learn zone "${zone}" is used in upstream "${name}" while previously it was used in "${owner}"`,
      block,
      'sticky',
    )
  }
}

/**
 * What the sessions of a group are bound by, its variables compiled; undefined where they are not.
 * @param label of the group, for people
 * @param table the sessions, where they are learnt
 */
export function stickyRules(
  block: UpstreamBlock,
  label: string,
  variables: Variables,
  table: Sessions | undefined,
): StickyRules | undefined {
  const { sticky, sticky_secret, sticky_strict = false } = block
  if (sticky === undefined) return undefined
  const learn = learnOf(block)
  const secret =
    sticky_secret === undefined || learn !== undefined ? undefined : variables.compile(bytes(sticky_secret))
  return {
    hints: hintsOf(block, variables),
    secret,
    cookie: 'cookie' in sticky ? cookieRules(sticky.cookie, variables) : undefined,
    book: learn && table && bookOf(learn, label, variables, table),
    strict: sticky_strict,
  }
}

function hintsOf({ sticky }: UpstreamBlock, variables: Variables): ((call: Call) => string)[] {
  if (sticky === undefined || 'learn' in sticky) return []
  if ('route' in sticky) return sticky.route.map((text) => variables.compile(bytes(text)))
  const name = lowerCase(bytes(sticky.cookie.name))
  return [(call) => cookie(call.rawHeaders, name)]
}

function cookieRules({ name, attributes = [] }: StickyCookie, variables: Variables): CookieRules {
  const texts = [...attributes]
  const at = texts.findIndex((text) => /^expires=/i.test(text))
  const expires = at < 0 ? undefined : expiresOf(texts[at]!.slice('expires='.length))
  // What is no time goes out as it stands.
  if (expires !== undefined) texts.splice(at, 1)
  if (!texts.some((text) => /^path=/i.test(text))) texts.push('path=/')
  return { name: bytes(name), expires, attributes: texts.map((text) => variables.compile(bytes(text))) }
}

function expiresOf(text: string): number | 'max' | undefined {
  if (text === 'max') return 'max'
  const ms = timeMs(text)
  return ms === undefined ? undefined : Math.floor(ms / 1000)
}

function bookOf(learn: StickyLearn, label: string, variables: Variables, table: Sessions): SessionBook {
  const rules = {
    // Each attempt may have another one.
    create: learn.create.map((text) => variables.fresh(bytes(text))),
    lookup: learn.lookup.map((text) => variables.compile(bytes(text))),
    timeout: timeMs(learn.timeout ?? '1h') ?? 3_600_000,
    at: learn.header ? ('header' as const) : learn.connect ? ('connect' as const) : ('end' as const),
    refresh: !learn.norefresh,
  }
  return new SessionBook(label, rules, table)
}
