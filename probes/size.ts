/**
 * Bytes of a size in the model's canonical form.
 * @throws Error for any other text
 */
export function sizeOf(text: string): number {
  const [, digits, unit = ''] = /^(\d+)([kmg]?)$/.exec(text) ?? []
  if (digits === undefined) throw new Error(`invalid size "${text}"`)
  return Number(digits) * 1024 ** ['', 'k', 'm', 'g'].indexOf(unit)
}
