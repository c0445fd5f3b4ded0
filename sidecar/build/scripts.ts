import type { Call } from '../../feedback/call.ts'
import type { Variables } from '../../feedback/variables.ts'
import { locationKey } from '../config/address.ts'
import type * as model from '../config/model.ts'
import type * as rewrites from '../config/rewrite-model.ts'
import type { Route, Step } from '../proxy/route.ts'
import { type Condition, compileScript, quotedText, rewriting, type ScriptStep } from '../proxy/script.ts'
import { bytes, patternOf, Texts } from './texts.ts'

/**
 * Declares every name that routes give values to: of `set`, and of what regular expressions capture. A text may use
 * a name before it is given a value, so this comes before anything is compiled.
 * @throws PatternError, and Error for a name that is taken
 */
export function declareNames(http: model.HttpBlock, variables: Variables): void {
  const texts = new Texts(variables)
  const pattern = (text: string) => {
    const found = patternOf(text)
    if (found) texts.declare(found.source)
  }
  const level = (
    block: model.Settings & { readonly rewrites?: readonly rewrites.RewriteStep[] },
    condition: readonly string[] = [],
  ) => {
    if (block.proxy_redirect !== 'off') {
      for (const line of block.proxy_redirect ?? []) if (line !== 'default') pattern(line.redirect)
    }
    for (const step of block.rewrites ?? []) {
      if ('set' in step) {
        const { variable, value } = step.set
        variables.declareSet(variable.slice(1))
        variables.depends(variable.slice(1), [value, ...condition])
      } else if ('rewrite' in step) texts.declare(step.rewrite.regex)
      else if ('if' in step) {
        const { variable, operator, value } = step.if
        if (operator?.includes('~')) {
          for (const name of texts.declare(value ?? '')) variables.depends(name, [variable])
        }
        level(step, [variable])
      }
    }
  }
  const locations = (blocks: Readonly<Record<string, model.LocationBlock>> | undefined) => {
    for (const [key, block] of Object.entries(blocks ?? {})) {
      const { kind, text } = locationKey(key)
      if (kind === 'regex' || kind === 'regex-any-case') texts.declare(text)
      level(block)
      locations(block.locations)
    }
  }
  level(http)
  for (const server of http.servers ?? []) {
    for (const name of server.server_name ?? []) pattern(name)
    level(server)
    locations(server.locations)
  }
}

/** Compiles `rewrites`. */
export class ScriptBuilder {
  readonly #texts: Texts

  constructor(texts: Texts) {
    this.#texts = texts
  }

  /** At the server's level an `if` has steps alone. */
  server(steps: readonly rewrites.RewriteStep[]): ((call: Call) => Step) | undefined {
    return compileScript(steps.map((step) => this.#step(step, () => undefined)))
  }

  /** @param route makes the route of an `if` */
  location(
    steps: readonly rewrites.RewriteStep[],
    route: (block: rewrites.IfBlock) => Route,
  ): ((call: Call) => Step) | undefined {
    return compileScript(steps.map((step) => this.#step(step, route)))
  }

  #step(step: rewrites.RewriteStep, route: (block: rewrites.IfBlock) => Route | undefined): ScriptStep {
    const { variables, compile } = this.#texts
    if ('set' in step) {
      const { variable, value } = step.set
      return {
        kind: 'set',
        assign: variables.declareSet(variable.slice(1)),
        value: quotedText(value, compile),
      }
    }
    if ('rewrite' in step) {
      const { regex, replacement, flag } = step.rewrite
      return rewriting(this.#texts.matcher(regex, false), replacement, flag, compile)
    }
    if ('return' in step) {
      const { code, text } = step.return
      // An empty text is none where a page could be sent.
      const none = text === undefined || (text === '' && code >= 400)
      return { kind: 'return', status: code, text: none ? undefined : compile(text) }
    }
    if ('if' in step) {
      return {
        kind: 'if',
        condition: this.#condition(step.if),
        steps: (step.rewrites ?? []).map((inner) => this.#step(inner, () => undefined)),
        route: route(step),
      }
    }
    return { kind: 'break' }
  }

  #condition({ variable, operator, value = '' }: rewrites.Condition): Condition {
    const subject = this.#texts.compile(bytes(variable))
    if (operator === undefined) return { kind: 'set', subject }
    const negative = operator.startsWith('!')
    if (!operator.includes('~')) {
      return { kind: 'equal', subject, value: quotedText(value, this.#texts.compile), negative }
    }
    const matches = this.#texts.matcher(value, operator.endsWith('*'))
    return { kind: 'match', subject, matches, negative }
  }
}
