import type { Draw } from './draw.ts'

/** Bytes that parsers stumble on. */
const nasty = [
  '\r',
  '\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '\x0b',
  '\x0c',
  '\x7f',
  '\x80',
  '\xff',
  '\x85',
  '\xa0',
  '"',
  '#',
  '%',
  '/',
  '0',
]

/** Lines that change what a message is. */
const lines = [
  'Transfer-Encoding: chunked',
  'transfer-encoding: identity',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding:',
  'Transfer_Encoding: chunked',
  'Content-Length: 0',
  'Content-Length: 5',
  'content-length: 5, 5',
  'Content-Length: 5, 6',
  'Content-Length: +5',
  'Content-Length: -1',
  'Content-Length: 0x5',
  'Content-Length: 5 5',
  'Content-Length: 18446744073709551616',
  'Content-Length: 00005',
  'Content-Length:',
  'Content_Length: 5',
  'Content-Length\0: 5',
  'Host: evil',
  'Host:',
  'Host: a b',
  'Host: a/b',
  '__proto__: x',
  '__proto__',
  'constructor: x',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: content-length',
  'Connection: host, transfer-encoding',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Expect: 200-ok',
  ' folded',
  '\tfolded: x',
  'X-F : a',
  ': a',
  'X-F',
  'X F: a',
  'X-F: a\rb',
  'X-F: a\nEvil: b',
  'X-F: a\0b',
  'X-F: \x7f',
  'X-F: \x01',
  '',
  '\r',
  'X-Many: a\r\n'.repeat(1200).trimEnd(),
  `X-Long: ${'a'.repeat(9000)}`,
]

/** Chunk-size lines that are none, or are odd. */
const sizes = [
  '5 ',
  '5\t',
  '0x5',
  '+5',
  '-5',
  ' 5',
  '5;',
  '5 ;a',
  '5;a\n',
  '5;a=\rb',
  '5;\0',
  '5\r',
  'FFFFFFFFFFFFFFFFF',
  'FFFFFFFF',
  '100000000',
  '00000000000000000000005',
  '',
  ';a',
  'g',
  '5,5',
  '5.0',
  '0',
  `5;${'a'.repeat(20_000)}`,
]

/** Changes a message: somewhere, somehow, once or a few times. */
export function mutate(draw: Draw, bytes: Buffer): Buffer {
  let text = bytes.toString('latin1')
  let left = draw.pick([1, 1, 1, 2, 4])
  while (left-- > 0) text = mutateOnce(draw, text)
  return Buffer.from(text, 'latin1')
}

function mutateOnce(draw: Draw, text: string): string {
  if (text === '') return draw.pick(nasty)
  const head = text.indexOf('\r\n\r\n')
  // The head is where most can go wrong, and is the smaller part by far.
  const limit = head > 0 && draw.chance(0.7) ? head + 4 : text.length
  const at = draw.below(limit)
  switch (draw.below(14)) {
    case 0:
      return splice(text, at, 1, String.fromCharCode(text.charCodeAt(at) ^ (1 << draw.below(8))))
    case 1:
      return splice(text, at, 1, draw.pick(nasty))
    case 2:
      return splice(text, at, 0, draw.pick(nasty))
    case 3:
      return splice(text, at, draw.pick([1, 1, 2, 5, 50]), '')
    case 4:
      return splice(text, at, 0, text.slice(at, at + draw.pick([1, 2, 20, 500])))
    case 5:
    case 6:
    case 7:
      return atLine(draw, text, `${draw.pick(lines)}\r\n`)
    case 8:
      return replaceOne(
        draw,
        text,
        /\r\n/g,
        draw.pick(['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n', '\r\n ', '\0\r\n', '']),
      )
    case 9:
      return replaceOne(draw, text, /: ?/g, draw.pick([' : ', '\t:', ':\r\n ', ':\0', '', '::', ':\x0b']))
    case 10:
      return replaceOne(draw, text, /(?<=\r\n)[0-9A-Fa-f]+(?=[;\r])/g, draw.pick(sizes))
    case 11:
      return replaceOne(
        draw,
        text,
        / HTTP\/1\.[01]/g,
        draw.pick([
          ' HTTP/0.9',
          ' HTTP/1.2',
          ' HTTP/2.0',
          ' HTTP/1.1 ',
          ' HTTP/1.1\0',
          '  HTTP/1.1',
          '\tHTTP/1.1',
          ' http/1.1',
          '',
          ' HTTP/1',
          ' HTTP/11.1',
          ' HTTP/1.1\r\n X: a',
          ' ICE/1.0',
          ' RTSP/1.0',
        ]),
      )
    case 12:
      return replaceOne(
        draw,
        text,
        /(?<=content-length:[ \t]*)\d+/gi,
        draw.pick([
          '0',
          '1',
          '7',
          '99999',
          '+5',
          '-5',
          '5 5',
          '5,5',
          '5, 6',
          '0x5',
          '1e1',
          '99999999999999999999',
          '5\t',
          '\xb2',
          '',
        ]),
      )
    default:
      return replaceOne(
        draw,
        text,
        / \//g,
        draw.pick([
          '  /',
          ' ',
          ' *',
          ' http://evil/',
          ' http://',
          ' //',
          ' /\0',
          ' /\t',
          ' ?',
          ' evil:80',
          ' @',
          ' http:/',
          ' ftp://a/',
        ]),
      )
  }
}

function splice(text: string, at: number, away: number, put: string): string {
  return text.slice(0, at) + put + text.slice(at + away)
}

/** Puts a text where a line begins. */
function atLine(draw: Draw, text: string, put: string): string {
  const head = text.indexOf('\r\n\r\n')
  const places: number[] = []
  for (
    let at = text.indexOf('\r\n');
    at >= 0 && (head < 0 || at <= head);
    at = text.indexOf('\r\n', at + 2)
  ) {
    places.push(at + 2)
  }
  return places.length === 0 ? put + text : splice(text, draw.pick(places), 0, put)
}

function replaceOne(draw: Draw, text: string, what: RegExp, by: string): string {
  const found = [...text.slice(0, 20_000).matchAll(what)]
  if (found.length === 0) return splice(text, draw.below(text.length), 1, draw.pick(nasty))
  const { index, 0: old } = draw.pick(found)
  return splice(text, index, old.length, by)
}
