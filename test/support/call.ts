import { Call } from '../../feedback/call.ts'
import { compilePattern } from '../../feedback/pattern.ts'
import { Variables } from '../../feedback/variables.ts'
import type { Matcher } from '../../sidecar/proxy/server-names.ts'
import { parseTarget } from '../../sidecar/proxy/uri.ts'

/** A call for a target, as the listener and the router leave it. */
export function callFor(target: string, fields: Partial<Call> = {}): Call {
  const call = new Call()
  const parsed = parseTarget(target)
  if (!parsed) throw new Error(`no target: ${target}`)
  call.target = parsed.origin
  call.uri = parsed.uri
  call.args = parsed.args
  return Object.assign(call, fields)
}

/** A regular expression, with `*` before it for any case, whose names are declared on the variables. */
export function matcher(source: string, variables = new Variables()): Matcher {
  const anyCase = source.startsWith('*')
  const { regex, names } = compilePattern(anyCase ? source.slice(1) : source, anyCase)
  const keep = variables.declareCaptures(names)
  return (call, text) => {
    const match = regex.exec(text)
    if (match) keep(call, match)
    return match !== null
  }
}
