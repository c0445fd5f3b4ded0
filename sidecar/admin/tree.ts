/** The status tree: named values in a fixed order, made only where somebody looks. */

export type Scalar = string | number | boolean

/** A value of the tree. A `Date` is a moment, shown as text or as seconds; a function lists an object's members. */
export type Node = Scalar | Date | Branch
export type Entry = readonly [key: string, value: Node]
export type Branch = () => Iterable<Entry>

/** An object without members. */
export const empty: Branch = () => []

/**
 * Finds a value by its path. Slashes at either end and doubled ones do not matter.
 * @returns undefined when there is none
 */
export function find(root: Node, path: string): Node | undefined {
  let node = root
  let rest = path
  for (;;) {
    let start = 0
    while (rest[start] === '/') start += 1
    rest = rest.slice(start)
    if (rest === '') return node
    if (typeof node !== 'function') return undefined
    // A key may hold slashes itself (`unix:/run/a.sock`), so keys are held against the path and not the reverse.
    let found: Entry | undefined
    for (const entry of node()) {
      const key = entry[0]
      if (!rest.startsWith(key) || (rest.length > key.length && rest[key.length] !== '/')) continue
      if (found === undefined || key.length > found[0].length) found = entry
    }
    if (found === undefined) return undefined
    node = found[1]
    rest = rest.slice(found[0].length)
  }
}

/** Six significant digits: more would be noise to a reader. */
export function rounded(value: number): number {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : 0
}
