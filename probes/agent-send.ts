import { readFile } from 'node:fs/promises'

/** What an agent is sent: `data:TEXT`, or the path of a file. */

const prefix = 'data:'

/** What stands for a character that cannot be written plainly. */
const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '\\': '\\' }

/**
 * What is wrong with the argument.
 * @returns the message, in the words of a configuration error; undefined when nothing is
 */
export function sendFault(send: string): string | undefined {
  if (send === '') return 'invalid parameter "send="'
  if (!send.startsWith(prefix)) return undefined
  return decoded(send.slice(prefix.length)) === undefined ? `invalid escape in "send=${send}"` : undefined
}

/**
 * The bytes that the argument stands for.
 * @throws the system's error when it names a file that cannot be read, the signal's when it is aborted before
 */
export async function sendBytes(send: string, signal?: AbortSignal): Promise<Buffer> {
  if (!send.startsWith(prefix)) return readFile(send, signal ? { signal } : {})
  const text = decoded(send.slice(prefix.length))
  if (text === undefined) throw new Error(`invalid escape in "send=${send}"`)
  return text
}

/** @returns undefined for an escape that there is not */
function decoded(text: string): Buffer | undefined {
  const pieces: Buffer[] = []
  for (const [piece] of text.matchAll(/[^\\]+|\\x[0-9a-fA-F]{2}|\\.?/gs)) {
    const plain = piece.startsWith('\\') ? escapes[piece.slice(1)] : piece
    if (plain !== undefined) pieces.push(Buffer.from(plain))
    else if (piece.length === 4) pieces.push(Buffer.from(piece.slice(2), 'hex'))
    else return undefined
  }
  return Buffer.concat(pieces)
}
