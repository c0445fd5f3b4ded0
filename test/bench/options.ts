/**
 * What a bench is asked to do; undefined where it is not to run: its usage has been said then, for `--help` or beside
 * what makes no sense.
 * @param read throws for what makes no sense, with a text for the user
 */
export function optionsOf<T>(
  read: (words: readonly string[]) => T,
  words: readonly string[],
  usage: string,
): T | undefined {
  if (words.includes('--help')) {
    console.log(usage)
    return undefined
  }
  try {
    return read(words)
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}\n${usage}`)
    process.exitCode = 1
    return undefined
  }
}

/**
 * Those with these names, in their own order; all of them where none is named.
 * @throws for a name that none has
 */
export function named<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  names: readonly string[] | undefined,
): readonly T[] {
  if (names === undefined) return all
  for (const name of names) {
    if (!all.some((one) => one.name === name)) {
      throw new Error(`no ${what} "${name}", there are ${all.map((one) => one.name).join(', ')}`)
    }
  }
  return all.filter(({ name }) => names.includes(name))
}

/** @throws unless the text is a whole number within bounds, both included */
export function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`--${name} is "${text}", not a whole number from ${least} to ${most}`)
  }
  return value
}
