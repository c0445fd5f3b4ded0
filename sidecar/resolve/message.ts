import { randomInt } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { type Answer, decode, encode, RECURSION_DESIRED } from 'dns-packet'

/** What is asked for. */
export type RecordType = 'A' | 'AAAA' | 'SRV'

export interface Question {
  /** Lower case, without a dot at its end. */
  readonly name: string
  readonly type: RecordType
}

interface Owned {
  /** Whose record it is; lower case, without a dot at its end. */
  readonly name: string
  /** Seconds that it is good for. */
  readonly ttl: number
}

/** The records that are of use here. */
export type Resource =
  | (Owned & { readonly type: 'A' | 'AAAA'; readonly address: string })
  | (Owned & { readonly type: 'CNAME'; readonly alias: string })
  | (Owned & { readonly type: 'SRV'; readonly service: Service })

export interface Service {
  readonly priority: number
  readonly weight: number
  readonly port: number
  /** Lower case, without a dot at its end; empty: the service is not to be had. */
  readonly target: string
}

/** What a server has answered. */
export interface Reply {
  /** `NOERROR`, `NXDOMAIN`, `SERVFAIL` and so on. */
  readonly code: string
  readonly answers: readonly Resource[]
  readonly additionals: readonly Resource[]
  /** Whether it says who is in charge of the name: then it knows for certain that there is no such record. */
  readonly negative: boolean
}

/** A name as it is compared and kept. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** Whether a name can stand in a message: labels of 1 to 63 bytes, 253 in all. */
export function askable(name: string): boolean {
  return name.length <= 253 && /^[^.]{1,63}(\.[^.]{1,63})*$/.test(name)
}

/** An id that nobody can guess. */
export function randomId(): number {
  return randomInt(0x1_0000)
}

export function queryOf(id: number, { name, type }: Question): Buffer {
  return encode({ type: 'query', id, flags: RECURSION_DESIRED, questions: [{ type, name }] })
}

/**
 * Takes a message for the answer to a query.
 * @returns `cut`: it is, and does not hold all there is; undefined: it is not one, or cannot be read
 */
export function replyTo(id: number, asked: Question, message: Buffer): Reply | 'cut' | undefined {
  // What was cut off anywhere cannot be read to its end.
  if (message.length < 12 || message.readUInt16BE(0) !== id) return undefined
  const flags = message.readUInt16BE(2)
  const isAnswer = (flags & 0x8000) !== 0 && (flags & 0x7800) === 0
  if (!isAnswer) return undefined
  if ((flags & 0x0200) !== 0) return 'cut'
  try {
    const { rcode, questions = [], answers = [], authorities = [], additionals = [] } = asDecoded(message)
    const [question] = questions
    // A server that could not read the query has nothing to repeat.
    const about = question !== undefined && plainName(question.name) === asked.name
    const same = about && question.type === asked.type && (question.class ?? 'IN') === 'IN'
    if (!same && !(rcode === 'FORMERR' && questions.length === 0)) return undefined
    return {
      code: rcode,
      answers: answers.flatMap(resourceOf),
      additionals: additionals.flatMap(resourceOf),
      negative: authorities.some(({ type }) => type === 'SOA'),
    }
  } catch {
    return undefined
  }
}

/** The types of the library leave out the code that it reads. */
function asDecoded(message: Buffer): ReturnType<typeof decode> & { readonly rcode: string } {
  return decode(message) as ReturnType<typeof decode> & { readonly rcode: string }
}

/** RFC 2181, 8: a TTL with its highest bit set is zero. */
function seconds(ttl: number | undefined): number {
  return ttl === undefined || ttl > 0x7fff_ffff ? 0 : ttl
}

function resourceOf(answer: Answer): Resource[] {
  if (answer.type === 'OPT' || (answer.class ?? 'IN') !== 'IN') return []
  const name = plainName(answer.name)
  const ttl = seconds(answer.ttl)
  switch (answer.type) {
    case 'A':
      return [{ name, ttl, type: 'A', address: whole(answer.data, isIPv4) }]
    case 'AAAA':
      return [{ name, ttl, type: 'AAAA', address: whole(answer.data, isIPv6) }]
    case 'CNAME':
      return [{ name, ttl, type: 'CNAME', alias: plainName(answer.data) }]
    case 'SRV': {
      const { priority = 0, weight = 0, port, target } = answer.data
      const service = { priority, weight, port, target: plainName(target) }
      return [{ name, ttl, type: 'SRV', service }]
    }
    default:
      return []
  }
}

/** The library does not notice that a message ends within an address. */
function whole(address: string, is: (text: string) => boolean): string {
  if (!is(address)) throw new Error(`no address: ${address}`)
  return address
}
