/** A piece of a text with variables. */
export interface Part {
  readonly literal: boolean
  /** The text itself, or a variable's name as written. */
  readonly text: string
}

/**
 * Splits a text at its variables. `$10` is `$1` and a zero, as in nginx.
 * @throws Error for an ill-written name
 */
export function splitText(text: string): Part[] {
  const parts: Part[] = []
  let from = 0
  for (let at = text.indexOf('$'); at >= 0; at = text.indexOf('$', from)) {
    if (at > from) parts.push({ literal: true, text: text.slice(from, at) })
    const braced = text[at + 1] === '{'
    const start = at + (braced ? 2 : 1)
    const name = (braced ? /^\w+/ : /^(?:[1-9]|\w+)/).exec(text.slice(start))?.[0] ?? ''
    from = start + name.length
    if (braced && name !== '' && text[from] !== '}') {
      throw new Error(`the closing bracket in "${name}" variable is missing`)
    }
    if (name === '') throw new Error('invalid variable name')
    if (braced) from += 1
    parts.push({ literal: false, text: name })
  }
  if (from < text.length) parts.push({ literal: true, text: text.slice(from) })
  return parts
}
