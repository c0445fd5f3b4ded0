import type { Draw } from './draw.ts'
import { mutate } from './mutations.ts'
import { bodyOf, chunked, field, shuffle } from './requests.ts'
import { readAnswer } from './strict.ts'

/** What a peer does with one request. */
export interface Script {
  /** When it begins: once the head is there, or the whole request. */
  readonly when: 'head' | 'whole'
  readonly bytes: Buffer
  /** Where it waits a moment between two writes, and how long, milliseconds. */
  readonly cuts: readonly number[]
  readonly pauseMs: number
  /** What it does with the connection then; `stall` says nothing more and leaves it open. */
  readonly end: 'keep' | 'fin' | 'reset' | 'stall'
  /** A valid answer in full: the client has to get it. */
  readonly sound: boolean
  /** After it both sides speak something else. */
  readonly tunnel: boolean
}

export interface Wanted {
  readonly method: string
  /** In a field and in the body, so that nobody takes it for another one. */
  readonly tag: string
  /** Something is wrong with it. */
  readonly spoilt: boolean
  /** It may leave the program waiting. */
  readonly stalls: boolean
}

const statuses = [200, 200, 200, 200, 201, 203, 206, 301, 404, 403, 418, 500, 503, 599, 204, 304]
const names = [
  'X-F',
  'x-f-lower',
  'Set-Cookie',
  'Set-Cookie',
  'WWW-Authenticate',
  'ETag',
  'Vary',
  'Content-Type',
  'Cache-Control',
  '__proto__',
  'constructor',
  'X_F',
  'X.F',
  'Location',
  'Last-Modified',
  'Content-Range',
  'Via',
  'Age',
]
const fieldValues = [
  '',
  'a',
  'a b\tc',
  '\xe9\xff\x80',
  '"q, c"',
  ',,,',
  'chunked',
  'a=b; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
  '__proto__',
  'HTTP/1.1 200 OK',
]
const phrases = ['OK', '', 'Not At All', 'caf\xe9', 'HTTP/1.1 200 OK']

/** An answer in one of the shapes that peers may give it. */
function valid(draw: Draw, method: string, tag: string): { bytes: Buffer; end: Script['end'] } {
  const status = draw.pick(statuses)
  const bare = method === 'HEAD' || status === 204 || status === 304
  const old = draw.chance(0.08)
  const fields = [field(draw, 'X-Tag', tag)]
  for (let left = draw.pick([0, 0, 1, 4, 12]); left > 0; left--) {
    fields.push(field(draw, draw.pick(names), draw.pick(fieldValues)))
  }
  let closes = old
  if (draw.chance(0.15)) {
    fields.push(field(draw, 'Connection', draw.cased('close')))
    closes = true
  } else if (draw.chance(0.05)) fields.push(field(draw, 'Connection', 'X-F, keep-alive'))
  const content = `${tag}\n${bodyOf(draw, tag, 0)}`
  let body = ''
  const how = draw.pick(['length', 'length', 'chunked', 'chunked', 'close'])
  if (bare) {
    if (status !== 204 && draw.chance(0.5))
      fields.push(field(draw, 'Content-Length', String(draw.below(5000))))
    else if (method === 'HEAD' && !old && draw.chance(0.3))
      fields.push(field(draw, 'Transfer-Encoding', 'chunked'))
  } else if (how === 'length') {
    fields.push(field(draw, 'Content-Length', String(content.length)))
    body = content
  } else if (how === 'chunked' && !old) {
    fields.push(field(draw, 'Transfer-Encoding', draw.cased('chunked')))
    body = chunked(draw, content)
  } else {
    body = content
    closes = true
  }
  shuffle(draw, fields)
  let interim = ''
  while (draw.chance(0.12)) {
    interim += `HTTP/1.1 ${draw.pick(['100 Continue', '102 Processing', '103 Early Hints'])}\r\nX-Tag: ${tag}\r\n\r\n`
  }
  const phrase = draw.pick(phrases)
  const line = `HTTP/1.${old ? 0 : 1} ${status}${phrase === '' && draw.chance(0.5) ? '' : ` ${phrase}`}`
  const bytes = Buffer.from(`${interim}${line}\r\n${fields.join('')}\r\n${body}`, 'latin1')
  return { bytes, end: closes ? 'fin' : 'keep' }
}

export function makeScript(draw: Draw, { method, tag, spoilt, stalls }: Wanted): Script {
  const { bytes, end } = valid(draw, method, tag)
  const script: Script = {
    when: draw.chance(0.1) ? 'head' : 'whole',
    bytes,
    cuts: draw.cuts(bytes.length),
    pauseMs: draw.pick([0, 0, 1, 3, 20]),
    end,
    sound: true,
    tunnel: false,
  }
  return spoilt ? together(spoil(draw, script, tag, stalls), method) : script
}

/** Bytes behind an answer come with its end, so that nobody can be asked in between. */
function together(script: Script, method: string): Script {
  const { end, state } = readAnswer(script.bytes, 0, method, false, 'open')
  const cuts = end < script.bytes.length ? script.cuts.filter((at) => at < end - 1) : script.cuts
  // Whoever waits for the rest of it waits for a time-out.
  const ends = script.end === 'keep' && state !== 'whole' ? 'fin' : script.end
  return { ...script, cuts, end: ends, sound: false }
}

/** Agrees to switch protocols, and speaks first. */
export function makeSwitch(draw: Draw, tag: string): Script {
  const said = `${tag}\n${bodyOf(draw, tag, 0)}`
  const head = `HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nX-Tag: ${tag}\r\n\r\n`
  const bytes = Buffer.from(head + said, 'latin1')
  return {
    when: 'whole',
    bytes,
    cuts: draw.cuts(bytes.length),
    pauseMs: 1,
    end: 'keep',
    sound: true,
    tunnel: true,
  }
}

const nonsense = [
  'hello\n',
  '\0\0\0\0',
  '\r\n\r\n',
  'HTTP/1.1\r\n\r\n',
  'HTTP/1.1 1000 X\r\n\r\n',
  'HTTP/1.1 099 X\r\n\r\n',
  'HTTP/2.0 200 OK\r\n\r\n',
  'ICY 200 OK\r\n\r\n',
  'HTTP/1.1 200 OK\n\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nevil',
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
]

function spoil(draw: Draw, script: Script, tag: string, stalls: boolean): Script {
  const { bytes } = script
  const text = bytes.toString('latin1')
  const ends = draw.pick(['fin', 'reset', 'keep', ...(stalls ? (['stall'] as const) : [])] as const)
  const with_ = (changed: Buffer, end: Script['end'] = script.end): Script => {
    return { ...script, bytes: changed, cuts: draw.cuts(changed.length), end }
  }
  const evil = `HTTP/1.1 200 OK\r\nX-Tag: evil\r\nContent-Length: 4\r\n\r\nevil`
  switch (draw.below(9)) {
    case 0:
      return with_(mutate(draw, bytes), draw.pick(['fin', 'reset'] as const))
    case 1:
      return with_(bytes.subarray(0, draw.below(bytes.length)), ends === 'keep' ? 'fin' : ends)
    case 2: {
      const more = draw.pick(['\r\n', 'x', evil, text, 'HTTP/1.1 100 Continue\r\n\r\n'])
      const changed = Buffer.concat([bytes, Buffer.from(more, 'latin1')])
      return with_(changed)
    }
    case 3: {
      const length = /(content-length:[ \t]*)(\d+)/i
      const other = draw.pick([
        '0',
        '1',
        '99999',
        '-1',
        '+5',
        '0x5',
        '5, 6',
        '5 5',
        '18446744073709551616',
        '1e3',
        '',
      ])
      return with_(Buffer.from(text.replace(length, `$1${other}`), 'latin1'), 'fin')
    }
    case 4: {
      const more = draw.pick([
        'Content-Length: 5\r\n',
        'Transfer-Encoding: chunked\r\n',
        'Transfer-Encoding: identity\r\n',
        ' folded\r\n',
        'X-F : a\r\n',
        'X-F\r\n',
        ': a\r\n',
        'X-F: a\rb\r\n',
        'X-F: a\0\r\n',
        'X-F: a\n',
        `X-Long: ${'a'.repeat(20_000)}\r\n`,
        'Content-Length: 5\r\nContent-Length: 6\r\n',
      ])
      const at = text.indexOf('\r\n') + 2
      return with_(Buffer.from(text.slice(0, at) + more + text.slice(at), 'latin1'), 'fin')
    }
    case 5:
      return with_(Buffer.from(draw.pick(nonsense), 'latin1'), draw.pick(['fin', 'reset', 'keep'] as const))
    case 6:
      return {
        ...with_(Buffer.alloc(0), ends === 'keep' ? 'reset' : ends),
        when: draw.pick(['head', 'whole'] as const),
      }
    case 7:
      // An end that nothing in the answer speaks of.
      return { ...script, end: draw.pick(['fin', 'reset'] as const) }
    default:
      return with_(
        Buffer.concat([
          Buffer.from(
            `HTTP/1.1 ${draw.pick([100, 103])} X\r\nX-Tag: ${tag}\r\n\r\n`.repeat(draw.pick([1, 5, 40])),
          ),
          bytes,
        ]),
      )
  }
}
