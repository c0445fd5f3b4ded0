import { locationKey } from './address.ts'
import { type Found, isEmpty, nothingFound } from './args.ts'
import type { Block, Context, Directive, Value } from './directive.ts'
import { advice } from './directives/advice.ts'
import { foreign } from './directives/foreign.ts'
import { isIdle } from './directives/idle.ts'
import { directivesIn, isKnown } from './directives.ts'
import { checkPattern, Fault } from './fault.ts'
import { fail, located, type Place } from './place.ts'

/** Directives of a group that take the method that stands before them into themselves, in nginx. */
const wrappers = ['keepalive', 'sticky', 'queue'] as const

/** A part of the model while it is being read. */
export type Draft = { [key: string]: Value | Draft | (Value | Draft)[] }

/** A block being read. */
export interface Level {
  readonly context: Context
  readonly draft: Draft
}

/** What both readers do alike: puts values into the model, and keeps where they stood and what is to be said. */
export class Reading {
  readonly warnings: string[] = []
  readonly notices: string[] = []
  readonly main: Level = { context: 'main', draft: {} }
  readonly #env: NodeJS.ProcessEnv
  readonly #noticed = new Set<string>()
  readonly #places = new WeakMap<object, Map<string, Place>>()

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env
  }

  /** Where a block, an occurrence or a key of one stood; the empty key is the object's own beginning. */
  at(owner: object, key = ''): Place | undefined {
    const places = this.#places.get(owner)
    return places?.get(key) ?? places?.get('')
  }

  mark(owner: object, key: string, place: Place): void {
    let places = this.#places.get(owner)
    if (places === undefined) {
      places = new Map()
      this.#places.set(owner, places)
    }
    places.set(key, place)
  }

  warn(place: Place, text: string): void {
    this.warnings.push(located(text, place))
  }

  /** Says once a name that something has no effect, or what else there is to say of it. */
  notice(place: Place, what: string, say = ' has no effect here'): void {
    if (this.#noticed.has(what)) return
    this.#noticed.add(what)
    this.notices.push(located(what + say, place))
  }

  /** Runs what may throw a Fault, and gives that its place. */
  within<T>(place: Place, run: () => T, places?: ReadonlyMap<string, Place>): T {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      fail(places?.get(error.argument ?? '') ?? place, error.message)
    }
  }

  /**
   * Fills in `${ENV:NAME}`.
   * @throws ConfigError for a name that is not set
   */
  text(raw: string, place: Place): string {
    return raw.replace(/\$\{ENV:([^}]*)\}/g, (_, name: string) => {
      const value = Object.hasOwn(this.#env, name) ? this.#env[name] : undefined
      if (value === undefined) fail(place, `environment variable "${name}" is not set`)
      return value
    })
  }

  /**
   * Puts one occurrence of a directive where it belongs.
   * @param places of its arguments, where those have places of their own
   */
  put(
    level: Level,
    directive: Directive,
    place: Place,
    read: (found: Found) => Value,
    places?: ReadonlyMap<string, Place>,
  ): void {
    const found = nothingFound()
    const value = this.within(place, () => read(found), places)
    this.#tell(directive, value, found, place)
    const key = directive.key ?? directive.name
    if (typeof value === 'object') {
      this.mark(value, '', place)
      for (const [name, token] of found.tokens) {
        const own = places?.get(name) ?? place
        this.mark(value, name, { ...own, token })
      }
    }
    if (directive.step) this.step(level, { [key]: isEmpty(value) ? true : value }, place)
    else if (directive.method) this.#putMethod(level, key, isEmpty(value) ? true : value, place)
    else this.#putValue(level, directive, value, place)
  }

  /** What is to be said of an occurrence although it is right. */
  #tell(directive: Directive, value: Value, found: Found, place: Place): void {
    const { unheeded = [] } = directive
    const ignored = unheeded === true ? [] : unheeded.filter((name) => found.tokens.has(name))
    if (unheeded === true) this.notice(place, `"${directive.name}" directive`)
    for (const name of [...ignored, ...found.ignored]) {
      this.notice(place, `"${name}" parameter of "${directive.name}" directive`)
    }
    for (const word of found.repeated) this.warn(place, `duplicate value "${word}"`)
    // The value has just been read by this very entry's schema.
    const remark = directive.remark?.(value as never)
    if (remark !== undefined) this.notice(place, remark, '')
  }

  #putValue({ draft }: Level, directive: Directive, value: Value, place: Place): void {
    const key = directive.key ?? directive.name
    const before = draft[key]
    if (before !== undefined && directive.merge) {
      draft[key] = this.#merged(before, directive, value, place)
      return
    }
    if (before !== undefined && !(directive.many && Array.isArray(before) && value !== 'off')) {
      fail(place, `"${directive.name}" directive is duplicate`)
    }
    this.mark(draft, key, place)
    const values = Array.isArray(value) ? value : [value]
    if (!directive.many || value === 'off') draft[key] = value
    else if (Array.isArray(before)) before.push(...values)
    else draft[key] = [...values]
  }

  /** What is there, with what another occurrence says. */
  #merged(before: Draft[string], directive: Directive, value: Value, place: Place): Draft {
    const merged: Draft = {}
    for (const part of [before, value]) {
      if (typeof part !== 'object') continue
      for (const [name, one] of Object.entries(part)) {
        if (Object.hasOwn(merged, name)) fail(place, `"${directive.name}" directive is duplicate`)
        merged[name] = one
        this.mark(merged, name, this.at(part, name) ?? place)
      }
    }
    this.mark(merged, '', place)
    return merged
  }

  step(level: Level, step: Draft, place: Place): void {
    this.mark(step, '', place)
    const steps = level.draft['rewrites']
    if (Array.isArray(steps)) steps.push(step)
    else level.draft['rewrites'] = [step]
  }

  /** The last method wins; one that stands after what wraps a method replaces that in nginx, and here does not. */
  #putMethod(level: Level, key: string, value: Value, place: Place): void {
    const others = directivesIn(level.context).filter((entry) => entry.method && entry.name in level.draft)
    const wrapped = place.syntax === 'nginx' && wrappers.some((name) => name in level.draft)
    if (others.length > 0 || wrapped) this.warn(place, 'load balancing method redefined')
    for (const other of others) delete level.draft[other.name]
    level.draft[key] = value
    this.mark(level.draft, key, place)
  }

  /** Opens a block by name, of a list, or the only one. */
  open(
    level: Level,
    block: Block,
    label: { name: string; source?: string } | undefined,
    place: Place,
  ): Draft {
    const draft: Draft = label?.source === undefined ? {} : { source: label.source }
    this.mark(draft, '', place)
    const before = level.draft[block.key]
    if (block.form === 'one') {
      if (before !== undefined) fail(place, `"${block.name}" directive is duplicate`)
      level.draft[block.key] = draft
    } else if (block.form === 'list') {
      if (Array.isArray(before)) before.push(draft)
      else level.draft[block.key] = [draft]
    } else {
      // A record by name is made here and nowhere else.
      const record = (before ?? Object.create(null)) as Record<string, Draft>
      level.draft[block.key] = record
      const same = Object.keys(record).find((name) => isSame(block, name, label!.name))
      if (same === undefined) record[label!.name] = draft
      else this.#duplicate(block, label!.name, place)
    }
    return draft
  }

  #duplicate(block: Block, name: string, place: Place): void {
    if (block.name === 'map') fail(place, `the duplicate "${name.slice(1)}" variable`)
    if (block.name !== 'location') fail(place, `duplicate ${block.name} "${name}"`)
    const { kind, text } = locationKey(name)
    // nginx lets the second of two equal expressions stand, and never comes to it.
    if (kind === 'regex' || kind === 'regex-any-case')
      this.warn(place, `duplicate location "${name}" is ignored`)
    else fail(place, `duplicate location "${text}"`)
  }

  /** One line of a `map`, `default` and flags apart. */
  mapValue(map: Draft, key: string, value: string, place: Place): void {
    const literal = key.startsWith('\\') && !/^\\[~\\]/.test(key) ? key.slice(1) : key
    if (key.startsWith('~')) {
      const anyCase = key.startsWith('~*')
      this.within(place, () => checkPattern(key.slice(anyCase ? 2 : 1), anyCase))
    }
    // As with blocks: made here and nowhere else.
    map['values'] ??= Object.create(null) as Draft
    const values = map['values'] as Draft
    if (Object.hasOwn(values, literal)) fail(place, `conflicting parameter "${literal}"`)
    values[literal] = value
    this.mark(values, literal, place)
  }

  /** One metric of a template. */
  templateLine(template: Draft, place: Place, read: (found: Found) => Value): void {
    const value = this.within(place, () => read(nothingFound()))
    const metrics = template['metrics']
    if (Array.isArray(metrics)) metrics.push(value)
    else template['metrics'] = [value]
  }

  /** A name that the table has not at this place: refused, or accepted and noticed. @param words its arguments */
  unknown(name: string, words: readonly string[], context: Context, place: Place): void {
    const treatment = foreign(name, context)
    if (treatment === 'noticed' || isIdle(name, words, context)) {
      this.notice(place, `"${name}" directive`)
      return
    }
    if (treatment === 'later') {
      fail(place, `"${name}" directive is not supported yet${advice(name, context)}`)
    }
    if (isKnown(name) || treatment === 'elsewhere') {
      fail(place, `"${name}" directive is not allowed here`)
    }
    if (treatment === 'never') fail(place, `"${name}" directive is not supported${advice(name, context)}`)
    fail(place, `unknown directive "${name}"`)
  }
}

/** Whether two names of blocks stand for one thing. */
function isSame(block: Block, a: string, b: string): boolean {
  if (block.name !== 'location')
    return a === b || (block.name !== 'prometheus_template' && a.toLowerCase() === b.toLowerCase())
  if (a === b) return true
  const [x, y] = [locationKey(a), locationKey(b)]
  const prefixes = ['prefix', 'prefix-only']
  return x.text === y.text && prefixes.includes(x.kind) && prefixes.includes(y.kind)
}
