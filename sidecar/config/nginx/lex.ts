import { ConfigError } from '../error.ts'

/** A word, or one of `;`, `{` and `}` outside of quotes. */
export interface Token {
  readonly kind: 'word' | ';' | '{' | '}' | 'end'
  /** The word without quotes and escapes. */
  readonly text: string
  readonly line: number
}

const blanks = ' \t\r\n'

/**
 * Cuts a text into words by nginx's rules: quotes only at the beginning of a word, `\"`, `\'`, `\\`, `\t`, `\r`
 * and `\n` as escapes and every other backslash kept, `${` inside of a word, `#` for comments between words.
 * @throws ConfigError
 */
export function* lex(source: string, file: string): Generator<Token> {
  let line = 1
  let at = source.startsWith('\ufeff') ? 1 : 0
  while (at < source.length) {
    const char = source[at]!
    if (char === '\n') line += 1
    if (blanks.includes(char)) {
      at += 1
    } else if (char === '#') {
      const end = source.indexOf('\n', at)
      at = end < 0 ? source.length : end
    } else if (char === ';' || char === '{' || char === '}') {
      yield { kind: char, text: char, line }
      at += 1
    } else {
      const word = char === '"' || char === "'" ? quoted(source, at, line, file) : bare(source, at)
      yield { kind: 'word', text: unescaped(word.raw), line }
      line += word.lines
      at = word.end
    }
  }
  yield { kind: 'end', text: '', line }
}

/**
 * The words of one text, for arguments that YAML has as a text.
 * @throws ConfigError without a line for an open quote, or for `;`, `{` or `}` outside of quotes
 */
export function lexWords(source: string, file: string): string[] {
  const words: string[] = []
  for (const { kind, text } of lex(source, file)) {
    if (kind === 'word') words.push(text)
    else if (kind !== 'end') throw new ConfigError(file, 0, `unexpected "${text}"`)
  }
  return words
}

interface Word {
  readonly raw: string
  /** Line breaks in it. */
  readonly lines: number
  /** Where the source goes on after it. */
  readonly end: number
}

function quoted(source: string, start: number, line: number, file: string): Word {
  const quote = source[start]!
  let end = start + 1
  let lines = 0
  for (; source[end] !== quote; end++) {
    if (end >= source.length) throw new ConfigError(file, line + lines, unterminated)
    if (source[end] === '\\') end += 1
    if (source[end] === '\n') lines += 1
  }
  const next = source[end + 1] ?? ' '
  // A parenthesis may follow a quote at once, for the sake of `if`.
  if (!`${blanks};{)`.includes(next)) throw new ConfigError(file, line + lines, `unexpected "${next}"`)
  return { raw: source.slice(start + 1, end), lines, end: end + 1 }
}

function bare(source: string, start: number): Word {
  let end = start
  while (end < source.length && !`${blanks};`.includes(source[end]!)) {
    // The brace of `${name}` opens no block.
    if (source[end] === '{' && source[end - 1] !== '$') break
    if (source[end] === '\\') end += 1
    end += 1
  }
  end = Math.min(end, source.length)
  const raw = source.slice(start, end)
  return { raw, lines: raw.split('\n').length - 1, end }
}

/** nginx's text for a file that stops in the middle of a directive. */
export const unterminated = 'unexpected end of file, expecting ";" or "}"'

const escapes: Readonly<Record<string, string>> = { t: '\t', r: '\r', n: '\n' }

function unescaped(raw: string): string {
  return raw.replace(/\\(["'\\trn])/g, (_, char: string) => escapes[char] ?? char)
}
