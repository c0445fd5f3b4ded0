/** Texts whose characters are bytes (latin1): the form of all that comes from and goes to the network. */

/** A text of a configuration as the bytes of its UTF-8, one character each. */
export function bytes(text: string): string {
  return /[^\x00-\x7f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}

/** Lower case of ASCII letters alone: other bytes are parts of characters and must stay. */
export function lowerCase(text: string): string {
  return /[A-Z]/.test(text) ? text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text
}
