import type { Seen } from './peer.ts'
import { readAnswer, type StrictAnswer } from './strict.ts'
import { type Field, words } from './strict-parts.ts'

/** Fields of a request that the program sets, or that concern one connection only. */
export const ownOfRequest = new Set([
  'host',
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'expect',
  'upgrade',
  'http2-settings',
  'transfer-encoding',
  'content-length',
])
/** The same of an answer. */
export const ownOfAnswer = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'upgrade',
  'transfer-encoding',
  'content-length',
  'date',
  'server',
  'x-explain',
  'x-pad',
])
/** Fields that `Connection` cannot take away. */
const notNameable = new Set(['host', 'content-length', 'transfer-encoding', 'content-type', 'authorization'])
/** More interim answers than this are taken for an attack. */
const mostInterims = 32
/** Heads of answers are either much shorter than `proxy_buffer_size`, or longer than this. */
const mostHead = 15_000

/** The fields that go on from one connection to the next, a line each. */
export function passed(fields: readonly Field[], own: ReadonlySet<string>, plainOnly: boolean): string {
  const named = new Set(words(fields, 'connection').filter((name) => !notNameable.has(name)))
  return fields
    .filter(({ name }) => {
      const lower = name.toLowerCase()
      return !own.has(lower) && !named.has(lower) && (!plainOnly || /^[A-Za-z0-9-]+$/.test(name))
    })
    .map(({ name, value }) => `${name}: ${value}`)
    .join('\n')
}

/** The beginning of bytes, for people. */
export const shown = (bytes: Buffer | string) => JSON.stringify(bytes.toString('latin1').slice(0, 300))

/** What a peer's words mean as an answer to the request that it got. */
export function answerOf({ said, ended, request }: Seen): StrictAnswer {
  const answer = readAnswer(said, 0, request.method, request.upgrade, ended)
  const heads = [answer.fields, ...answer.interim.map(({ fields }) => fields)]
  const lengths = heads.map((fields) =>
    fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0),
  )
  if (answer.interim.length <= mostInterims && Math.max(...lengths) < mostHead) return answer
  return { ...answer, state: 'broken', status: 0, why: 'more than is read', body: Buffer.alloc(0) }
}
