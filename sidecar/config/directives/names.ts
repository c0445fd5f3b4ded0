/** Whether one of the names is this one; an asterisk in them stands for any text. */
export function covers(names: readonly string[], name: string): boolean {
  return names.some((pattern) => {
    const star = pattern.indexOf('*')
    if (star < 0) return pattern === name
    return name.startsWith(pattern.slice(0, star)) && name.endsWith(pattern.slice(star + 1))
  })
}
