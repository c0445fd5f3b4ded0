import type { Call } from '../../feedback/call.ts'
import type { Route, Step, Text } from './route.ts'
import type { Matcher } from './server-names.ts'
import { escapeArgs, fitForLine, unescapeRedirect } from './uri.ts'

/**
 * A text with variables and captures. Captures come decoded; `quote` has them escaped again for a query string or
 * a redirect.
 */
export type QuotedText = (call: Call, quote: boolean) => string

/** When an `if` holds. */
export type Condition =
  /** The text is neither empty nor `0`. */
  | { readonly kind: 'set'; readonly subject: Text }
  | { readonly kind: 'equal'; readonly subject: Text; readonly value: QuotedText; readonly negative: boolean }
  | { readonly kind: 'match'; readonly subject: Text; readonly matches: Matcher; readonly negative: boolean }

/** `rewrite REGEX REPLACEMENT [FLAG]`, compiled. */
export interface Rewriting {
  readonly kind: 'rewrite'
  readonly matches: Matcher
  /** Path, or for a redirect the whole of it. */
  readonly path: QuotedText
  /** What follows the first question mark of the replacement; undefined where there is none. */
  readonly args: QuotedText | undefined
  /** Whether the request's own arguments follow: not where the replacement ends in a question mark. */
  readonly addArgs: boolean
  /** Status of a redirect; undefined where the URI is changed. */
  readonly redirect: 301 | 302 | undefined
  /** What a match does with the rest of the script. */
  readonly flag: 'last' | 'break' | undefined
}

/** A directive of the rewrite module, compiled. */
export type ScriptStep =
  | {
      readonly kind: 'set'
      readonly assign: (call: Call, value: string) => void
      readonly value: QuotedText
    }
  | Rewriting
  | { readonly kind: 'return'; readonly status: number; readonly text: Text | undefined }
  | { readonly kind: 'break' }
  | {
      readonly kind: 'if'
      readonly condition: Condition
      readonly steps: readonly ScriptStep[]
      /** Settings and content from here on; undefined at the server's level, where they do not change. */
      readonly route: Route | undefined
    }

/** Compiles a text of `rewrite`, `set` or `if`: captures `$1` to `$9` here, variables by `compile`. */
export function quotedText(text: string, compile: (text: string) => Text): QuotedText {
  const parts: (number | Text)[] = []
  text.split(/\$([1-9])/).forEach((piece, i) => {
    if (i % 2 === 1) parts.push(Number(piece))
    else if (piece !== '') parts.push(compile(piece))
  })
  return (call, quote) => {
    let out = ''
    for (const part of parts) {
      if (typeof part !== 'number') out += part(call)
      else {
        const capture = call.captures[part] ?? ''
        out += quote && wasQuoted(call) ? escapeArgs(capture) : capture
      }
    }
    return out
  }
}

/** nginx escapes captures only where the client's path had escapes (or a plus) in it that were undone. */
function wasQuoted(call: Call): boolean {
  const { target } = call
  const end = target.indexOf('?')
  const path = end < 0 ? target : target.slice(0, end)
  return path.includes('%') || path.includes('+')
}

/** Compiles a `rewrite`. A replacement with a scheme is a redirect whatever the flag, as in nginx. */
export function rewriting(
  matches: Matcher,
  replacement: string,
  flag: 'last' | 'break' | 'redirect' | 'permanent' | undefined,
  compile: (text: string) => Text,
): Rewriting {
  const addArgs = !replacement.endsWith('?')
  const text = addArgs ? replacement : replacement.slice(0, -1)
  const absolute = /^(https?:\/\/|\$scheme)/.test(text)
  const redirect = flag === 'permanent' ? 301 : flag === 'redirect' || absolute ? 302 : undefined
  const question = text.indexOf('?')
  const split = redirect === undefined && question >= 0
  return {
    kind: 'rewrite',
    matches,
    path: quotedText(split ? text.slice(0, question) : text, compile),
    args: question < 0 ? undefined : quotedText(text.slice(question + 1), compile),
    addArgs,
    redirect,
    flag: flag === 'last' || flag === 'break' ? flag : undefined,
  }
}

/** Where a running script stands. */
class Run {
  /** The URI was changed and its location not looked for yet. */
  changed = false
  /** As in nginx captures in `set` are escaped until a `rewrite` has matched. */
  quote = true
  route: Route | undefined = undefined

  /** @returns what ends the script; undefined to go on */
  steps(steps: readonly ScriptStep[], call: Call): Step | 'end' | undefined {
    for (const step of steps) {
      const end = this.#step(step, call)
      if (end) return end
    }
    return undefined
  }

  #step(step: ScriptStep, call: Call): Step | 'end' | undefined {
    switch (step.kind) {
      case 'set':
        step.assign(call, step.value(call, this.quote))
        return undefined
      case 'rewrite':
        return this.#rewrite(step, call)
      case 'return':
        return { kind: 'return', status: step.status, text: step.text?.(call), route: this.route }
      case 'break':
        if (this.changed) call.pathKept = false
        this.changed = false
        return 'end'
      case 'if':
        if (!this.#holds(step.condition, call)) return undefined
        this.route = step.route ?? this.route
        return this.steps(step.steps, call)
    }
  }

  #holds(condition: Condition, call: Call): boolean {
    const subject = condition.subject(call)
    if (condition.kind === 'set') return subject !== '' && subject !== '0'
    if (condition.kind === 'equal') {
      return (subject === condition.value(call, this.quote)) !== condition.negative
    }
    return tryMatch(condition.matches, call, subject) !== condition.negative
  }

  #rewrite(step: Rewriting, call: Call): Step | 'end' | undefined {
    if (!tryMatch(step.matches, call, call.uri)) return undefined
    this.quote = false
    const own = step.addArgs ? call.args : ''
    if (step.redirect !== undefined) {
      const location = unescapeRedirect(step.path(call, true))
      const more = own === '' ? '' : (step.args ? '&' : '?') + own
      return { kind: 'return', status: step.redirect, text: location + more, route: this.route }
    }
    const path = step.path(call, false)
    // Arguments end up in a request line as they are.
    if (step.args) {
      const args = fitForLine(step.args(call, true))
      call.args = own === '' ? args : `${args}&${own}`
    } else call.args = own
    // nginx: "the rewritten URI has a zero length".
    if (path === '') return { kind: 'return', status: 500, text: undefined, route: this.route }
    call.uri = path
    call.rewritten = true
    this.changed = step.flag !== 'break'
    if (step.flag === 'break') call.pathKept = false
    return step.flag === undefined ? undefined : 'end'
  }
}

/** Inside of a script a regular expression that does not match leaves no captures, as in nginx. */
function tryMatch(matches: Matcher, call: Call, text: string): boolean {
  if (matches(call, text)) return true
  call.captures = []
  return false
}

/**
 * Compiles the directives of one level.
 * @returns undefined when there are none
 */
export function compileScript(steps: readonly ScriptStep[]): ((call: Call) => Step) | undefined {
  if (steps.length === 0) return undefined
  return (call) => {
    const run = new Run()
    const end = run.steps(steps, call)
    if (end !== undefined && end !== 'end') return end
    if (run.changed) return { kind: 'relocate' }
    return run.route ? { kind: 'route', route: run.route } : { kind: 'content' }
  }
}
