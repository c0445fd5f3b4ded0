/** What a load report may say. */
export interface OrcaReport {
  readonly cpu_utilization?: number
  readonly mem_utilization?: number
  readonly rps?: number
  readonly rps_fractional?: number
  readonly eps?: number
  readonly application_utilization?: number
  readonly named_metrics?: Readonly<Record<string, number>>
  readonly utilization?: Readonly<Record<string, number>>
  readonly request_cost?: Readonly<Record<string, number>>
}

const doubles = new Map([
  ['cpu_utilization', 1],
  ['mem_utilization', 2],
  ['rps_fractional', 6],
  ['eps', 7],
  ['application_utilization', 9],
])
const maps = new Map([
  ['request_cost', 4],
  ['utilization', 5],
  ['named_metrics', 8],
])

/** The report as a protobuf message, fields in the order of the object; zeros are written too. */
export function orcaMessage(report: OrcaReport): Buffer {
  const parts: Buffer[] = []
  // What the interface says of the members' types.
  const members: [string, number | Readonly<Record<string, number>>][] = Object.entries(report)
  for (const [name, value] of members) {
    if (typeof value === 'object') {
      for (const [key, number] of Object.entries(value)) {
        const entry = Buffer.concat([bytes(1, Buffer.from(key, 'latin1')), double(2, number)])
        parts.push(bytes(maps.get(name)!, entry))
      }
    } else if (name === 'rps') parts.push(Buffer.from([3 << 3]), varint(value))
    else parts.push(double(doubles.get(name)!, value))
  }
  return Buffer.concat(parts)
}

function double(field: number, value: number): Buffer {
  const written = Buffer.alloc(9)
  written[0] = (field << 3) | 1
  written.writeDoubleLE(value, 1)
  return written
}

function bytes(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), varint(content.length), content])
}

function varint(value: number): Buffer {
  const written: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...written, rest])
    written.push((rest % 128) | 128)
  }
}
