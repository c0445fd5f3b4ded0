/** A span as a receiver of OTLP has it. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty where it has none. */
  readonly parentSpanId: string
  readonly traceState: string
  readonly name: string
  /** 2 is SERVER, 3 CLIENT. */
  readonly kind: number
  /** Milliseconds since the epoch. */
  readonly start: number
  readonly end: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number
  /** Attributes of the resource it came with. */
  readonly resource: Readonly<Record<string, unknown>>
  /** Name and version of the scope. */
  readonly scope: string
}

type Tree = Map<number, (bigint | Buffer)[]>

/** Reads the fields of a protobuf message, by their numbers; nothing is known of their types. */
function fields(message: Buffer): Tree {
  const tree: Tree = new Map()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number): Buffer => {
    const piece = message.subarray(at, at + length)
    if (piece.length < length) throw new Error('the message ends too early')
    at += length
    return piece
  }
  while (at < message.length) {
    const tag = Number(varint())
    const wire = tag & 7
    const value =
      wire === 0
        ? varint()
        : wire === 1
          ? take(8).readBigUInt64LE()
          : wire === 5
            ? BigInt(take(4).readUInt32LE())
            : take(Number(varint()))
    tree.set(tag >> 3, [...(tree.get(tag >> 3) ?? []), value])
  }
  return tree
}

const messages = (tree: Tree, field: number): Tree[] =>
  (tree.get(field) ?? []).map((value) => fields(value as Buffer))
const number = (tree: Tree, field: number): bigint =>
  BigInt((tree.get(field)?.[0] as bigint | undefined) ?? 0n)
const octets = (tree: Tree, field: number): Buffer =>
  (tree.get(field)?.[0] as Buffer | undefined) ?? Buffer.alloc(0)
const text = (tree: Tree, field: number): string => octets(tree, field).toString()

function anyValue(tree: Tree): unknown {
  if (tree.has(1)) return text(tree, 1)
  if (tree.has(2)) return number(tree, 2) === 1n
  if (tree.has(3)) return Number(number(tree, 3))
  if (tree.has(4)) {
    const bits = Buffer.alloc(8)
    bits.writeBigUInt64LE(number(tree, 4))
    return bits.readDoubleLE()
  }
  if (tree.has(5)) return messages(messages(tree, 5)[0]!, 1).map(anyValue)
  return undefined
}

function attributesOf(tree: Tree, field: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(tree, field).map((pair) => [text(pair, 1), anyValue(messages(pair, 2)[0] ?? new Map())]),
  )
}

/** Reads an `ExportTraceServiceRequest` (opentelemetry/proto/collector/trace/v1). */
export function readProtobuf(message: Buffer): ReceivedSpan[] {
  return messages(fields(message), 1).flatMap((group) => {
    const resource = attributesOf(messages(group, 1)[0] ?? new Map(), 1)
    return messages(group, 2).flatMap((scoped) => {
      const scope = messages(scoped, 1)[0] ?? new Map()
      return messages(scoped, 2).map((span) => ({
        traceId: octets(span, 1).toString('hex'),
        spanId: octets(span, 2).toString('hex'),
        traceState: text(span, 3),
        parentSpanId: octets(span, 4).toString('hex'),
        name: text(span, 5),
        kind: Number(number(span, 6)),
        start: Number(number(span, 7) / 1000n) / 1000,
        end: Number(number(span, 8) / 1000n) / 1000,
        attributes: attributesOf(span, 9),
        status: Number(number(messages(span, 15)[0] ?? new Map(), 3)),
        resource,
        scope: `${text(scope, 1)} ${text(scope, 2)}`,
      }))
    })
  })
}

interface JsonValue {
  readonly stringValue?: string
  readonly boolValue?: boolean
  readonly intValue?: string | number
  readonly doubleValue?: number
  readonly arrayValue?: { readonly values: readonly JsonValue[] }
}
type JsonAttributes = readonly { readonly key: string; readonly value: JsonValue }[]

function jsonValue(value: JsonValue): unknown {
  if (value.intValue !== undefined) return Number(value.intValue)
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(jsonValue)
  return value.stringValue ?? value.boolValue ?? value.doubleValue
}

const jsonAttributes = (list: JsonAttributes | undefined): Record<string, unknown> =>
  Object.fromEntries((list ?? []).map(({ key, value }) => [key, jsonValue(value)]))

/** The same message in its JSON form. */
export function readJson(body: string): ReceivedSpan[] {
  // What is not of this shape fails the test that reads it.
  const { resourceSpans } = JSON.parse(body) as {
    resourceSpans: readonly {
      resource: { attributes?: JsonAttributes }
      scopeSpans: readonly {
        scope: { name: string; version: string }
        spans: readonly {
          traceId: string
          spanId: string
          parentSpanId?: string
          traceState?: string
          name: string
          kind: number
          startTimeUnixNano: string
          endTimeUnixNano: string
          attributes?: JsonAttributes
          status?: { code?: number }
        }[]
      }[]
    }[]
  }
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        traceState: span.traceState ?? '',
        name: span.name,
        kind: span.kind,
        start: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        end: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        attributes: jsonAttributes(span.attributes),
        status: span.status?.code ?? 0,
        resource: jsonAttributes(resource.attributes),
        scope: `${scope.name} ${scope.version}`,
      })),
    ),
  )
}
