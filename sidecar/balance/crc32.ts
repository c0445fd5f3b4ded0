/** The IEEE CRC-32, as a register to feed: start with `crcStart`, end with `crcEnd`. */

const table = new Int32Array(256)
for (let byte = 0; byte < 256; byte++) {
  let c = byte
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  table[byte] = c
}

export const crcStart = -1

export function crcByte(register: number, byte: number): number {
  return table[(register ^ byte) & 0xff]! ^ (register >>> 8)
}

/** Feeds a text of which each character stands for one byte. Faster than a native call for texts as short as keys. */
export function crcText(register: number, text: string): number {
  let c = register
  for (let i = 0; i < text.length; i++) c = table[(c ^ text.charCodeAt(i)) & 0xff]! ^ (c >>> 8)
  return c
}

/** The checksum, 0 to 2³² − 1. */
export function crcEnd(register: number): number {
  return ~register >>> 0
}
