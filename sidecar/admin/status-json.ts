import type { Branch, Node, Scalar } from './tree.ts'

export interface Format {
  /** Indented by tabs, lines ended by CR LF, an empty line after each object that is followed by a member. */
  readonly pretty: boolean
  /** Moments as whole seconds since 1970 instead of ISO 8601 text. */
  readonly epoch: boolean
}

/** Writes a part of the status tree as Angie does, byte for byte: its users compare and parse such text. */
export function statusJson(node: Node, format: Format): string {
  const out: string[] = []
  write(out, node, format, 1)
  if (format.pretty) out.push('\r\n')
  return out.join('')
}

function write(out: string[], node: Node, format: Format, depth: number): void {
  if (typeof node === 'function') writeBranch(out, node, format, depth)
  else out.push(JSON.stringify(scalar(node, format.epoch)))
}

function writeBranch(out: string[], branch: Branch, format: Format, depth: number): void {
  const { pretty } = format
  let first = true
  let afterObject = false
  out.push('{')
  for (const [key, value] of branch()) {
    if (!first) out.push(',')
    // The empty line follows objects that have members, where another member follows them.
    if (pretty) out.push(afterObject ? '\r\n\r\n' : '\r\n', '\t'.repeat(depth))
    out.push(JSON.stringify(key), pretty ? ': ' : ':')
    const before = out.length
    write(out, value, format, depth + 1)
    afterObject = typeof value === 'function' && out.length > before + 2
    first = false
  }
  if (pretty && !first) out.push('\r\n', '\t'.repeat(depth - 1))
  out.push('}')
}

/** The plain value of a leaf. Numbers that JSON cannot say (none is expected) become 0. */
export function scalar(leaf: Scalar | Date, epoch: boolean): Scalar {
  if (leaf instanceof Date) return moment(leaf, epoch)
  return typeof leaf === 'number' && !Number.isFinite(leaf) ? 0 : leaf
}

function moment(date: Date, epoch: boolean): Scalar {
  const ms = Math.floor(date.getTime())
  if (epoch) return Math.floor(ms / 1000)
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
