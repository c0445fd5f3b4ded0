import { drawRequestId } from '../../feedback/variables/request.ts'

/** Who a request comes from, as W3C Trace Context has it. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string
  /** Of the span that sent the request: 16 of them, not all zero. */
  readonly spanId: string
  /** 0 to 255. Bit 0: the trace is kept; bit 1: its id is random. */
  readonly flags: number
  /** What vendors add, as one list; empty for none. */
  readonly state: string
}

/** The trace is kept. */
export const sampledFlag = 1
/** The id is random: nobody but who began the trace knows, so it is passed on as it came (level 2 of the standard). */
export const randomFlag = 2

/** Length of a `traceparent` of version 00. */
const parentLength = 55
const parentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/
const noTrace = '0'.repeat(32)
const noSpan = '0'.repeat(16)

/**
 * Reads the context that a request came with. What is not exactly as the standard has it is none: a new trace begins.
 * @param rawHeaders names and values in turn
 */
export function readTraceContext(rawHeaders: readonly string[]): TraceContext | undefined {
  let parent: string | undefined
  let states: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 11) {
      if (name !== 'traceparent' && name.toLowerCase() !== 'traceparent') continue
      // Of two of them nobody knows which is meant.
      if (parent !== undefined) return undefined
      parent = rawHeaders[i + 1]!
    } else if (name.length === 10) {
      if (name !== 'tracestate' && name.toLowerCase() !== 'tracestate') continue
      states = states === undefined ? rawHeaders[i + 1]! : `${states},${rawHeaders[i + 1]!}`
    }
  }
  return parent === undefined ? undefined : traceContext(parent, states)
}

/**
 * @param parent a `traceparent`
 * @param states the `tracestate` lines, joined; undefined for none
 * @returns undefined where the `traceparent` is none
 */
export function traceContext(parent: string, states: string | undefined): TraceContext | undefined {
  const match = parentForm.exec(parent)
  if (match === null) return undefined
  const [, version, traceId, spanId, flags] = match
  // A later version may have more to say, behind what this one says.
  if (version === 'ff' || (version === '00' && parent.length !== parentLength)) return undefined
  if (traceId === noTrace || spanId === noSpan) return undefined
  const state = (states !== undefined && traceState(states)) || ''
  // The pattern has all four.
  return { traceId: traceId!, spanId: spanId!, flags: Number.parseInt(flags!, 16), state }
}

/** Most members of a `tracestate`. */
const mostMembers = 32
const member =
  /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/**
 * The members of a `tracestate`, without blanks around them and without empty ones.
 * @returns undefined where one of them is malformed, stands twice, or there are too many: then none is believed
 */
export function traceState(text: string): string | undefined {
  const seen = new Set<string>()
  let kept = ''
  for (const part of text.split(',')) {
    const item = unblanked(part)
    if (item === '') continue
    const key = item.slice(0, item.indexOf('='))
    if (!member.test(item) || seen.has(key) || seen.size === mostMembers) return undefined
    seen.add(key)
    kept += kept === '' ? item : `,${item}`
  }
  return kept
}

/** Without blanks and tabs at its ends. A pattern would look at every blank inside of it again and again. */
function unblanked(text: string): string {
  const blank = (at: number) => text[at] === ' ' || text[at] === '\t'
  let start = 0
  let end = text.length
  while (start < end && blank(start)) start += 1
  while (end > start && blank(end - 1)) end -= 1
  return text.slice(start, end)
}

/** A `traceparent`, of version 00. Flags that it does not know are not set in it. */
export function traceparent(traceId: string, spanId: string, flags: number): string {
  return `00-${traceId}-${spanId}-0${flags & (sampledFlag | randomFlag)}`
}

/** Draws the id of a trace. */
export function drawTraceId(): string {
  const id = drawRequestId()
  return id === noTrace ? drawTraceId() : id
}

/** Draws the id of a span. */
export function drawSpanId(): string {
  const id = drawRequestId().slice(0, 16)
  return id === noSpan ? drawSpanId() : id
}
