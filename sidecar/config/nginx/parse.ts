import { ConfigError } from '../error.ts'
import { lex, unterminated } from './lex.ts'

/** A directive as written. */
export interface Node {
  readonly name: string
  readonly args: readonly string[]
  /** What stands in its block; undefined when it ends with `;`. */
  readonly block: readonly Node[] | undefined
  /** Arguments that begin a line of their own: the first of them may be a directive that a missing `;` has swallowed. */
  readonly fresh: readonly string[]
  readonly file: string
  readonly line: number
}

/** More braces inside of one another than any file has. */
const deepest = 200

/**
 * Builds the tree of directives.
 * @throws ConfigError
 */
export function parse(source: string, file: string): Node[] {
  const root: Node[] = []
  const open: Node[][] = [root]
  let words: string[] = []
  let fresh: string[] = []
  let start = 1
  let last = 1
  for (const token of lex(source, file)) {
    if (token.kind === 'word') {
      if (words.length === 0) start = token.line
      else if (token.line > last) fresh.push(token.text)
      last = token.line
      words.push(token.text)
      continue
    }
    last = token.line
    if (token.kind === 'end') break
    if (token.kind === '}') {
      if (words.length > 0) {
        throw new ConfigError(file, token.line, `unexpected "}", a ";" is missing after "${words.at(-1)}"`)
      }
      if (open.length === 1) throw new ConfigError(file, token.line, 'unexpected "}"')
      open.pop()
      continue
    }
    const [name, ...args] = words
    if (name === undefined) throw new ConfigError(file, token.line, `unexpected "${token.text}"`)
    words = []
    const node = { name, args, fresh, file, line: start }
    fresh = []
    const block: Node[] | undefined = token.kind === '{' ? [] : undefined
    open.at(-1)!.push({ ...node, block })
    if (block === undefined) continue
    if (open.length > deepest) throw new ConfigError(file, token.line, 'blocks are too deep')
    open.push(block)
  }
  if (words.length > 0) throw new ConfigError(file, last, unterminated)
  if (open.length > 1) throw new ConfigError(file, last, 'unexpected end of file, expecting "}"')
  return root
}
