import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { ConfigError } from '../error.ts'
import { fail, type Place } from '../place.ts'

/** A file may name the same part many times; a small one that unfolds into a huge one is a mistake. */
const mostAliases = 10_000

/** A node of the document; null for an empty value. */
export type Item = Node | null

/** A key with what it stands for. */
export interface Pair {
  readonly key: string
  readonly value: Item
  readonly place: Place
}

/** A YAML or JSON file, with the line of everything in it. */
export class YamlDocument {
  readonly root: Item
  readonly #file: string
  readonly #text: (raw: string, place: Place) => string
  readonly #lines = new LineCounter()
  readonly #document
  /** The key that each value stands below, for messages. */
  readonly #keys = new WeakMap<Node, string>()
  #aliases = 0

  /**
   * @param text fills in what stands for something else in a text
   * @throws ConfigError when the source is no YAML
   */
  constructor(source: string, file: string, text: (raw: string, place: Place) => string) {
    this.#file = file
    this.#text = text
    this.#document = parseDocument(source, {
      lineCounter: this.#lines,
      prettyErrors: false,
      // The reader has its own words for what stands twice.
      uniqueKeys: false,
    })
    const [error] = this.#document.errors
    if (error) throw new ConfigError(file, this.#lines.linePos(error.pos[0]).line, oneLine(error.message))
    this.root = this.resolve(this.#document.contents)
  }

  /** The keys and values of a mapping; none for an empty value. */
  pairs(node: Item): Pair[] {
    const map = this.resolve(node)
    if (isEmpty(map)) return []
    if (!isMap(map)) fail(this.place(map), `a mapping is expected${this.#below(map!)}`)
    return map.items.map((pair) => {
      const key = this.resolve(pair.key)
      const place = this.place(key)
      const name = this.scalar(key, place)
      const value = this.resolve(pair.value)
      if (value !== null) this.#keys.set(value, name)
      return { key: name, value, place }
    })
  }

  /** The items of a list; a single value is a list of one, an empty one of none. */
  items(node: Item): Item[] {
    const list = this.resolve(node)
    if (isEmpty(list)) return []
    if (!isSeq(list)) return [list]
    const key = this.#keys.get(list)
    return list.items.map((item) => {
      const node = this.resolve(item)
      if (node !== null && key !== undefined) this.#keys.set(node, key)
      return node
    })
  }

  #below(node: Node): string {
    const key = this.#keys.get(node)
    if (key !== undefined) return ` below "${key}"`
    return isScalar(node) ? ': the syntax of nginx is for files that are called *.conf' : ''
  }

  /** The text of a scalar as written, so that `1.10` and `0010` stay what they are. */
  scalar(item: unknown, place: Place): string {
    const node = this.resolve(item)
    if (!isScalar(node)) fail(this.place(node, place), 'a text is expected')
    return this.#text(rawText(node), this.place(node, place))
  }

  /** The node itself, or the one that an alias stands for. */
  resolve(item: unknown): Item {
    // A parsed document holds nodes and nulls, whatever the library's types allow in a made one.
    if (!isAlias(item)) return (item ?? null) as Item
    this.#aliases += 1
    if (this.#aliases > mostAliases) fail(this.place(item), 'too many aliases')
    const target = (item as Alias).resolve(this.#document)
    if (target === undefined || isAlias(target)) fail(this.place(item), `unresolved alias "${item.source}"`)
    return target as Scalar | YAMLMap
  }

  place(node: Item, otherwise?: Place): Place {
    if (!node?.range && otherwise) return otherwise
    const line = node?.range ? this.#lines.linePos(node.range[0]).line : 1
    return { file: this.#file, line, syntax: 'yaml' }
  }
}

/** Whether nothing was written. */
export function isEmpty(node: Item): boolean {
  return node === null || (isScalar(node) && node.value === null)
}

/** The text of a scalar before anything is filled in. */
export function rawText(node: Scalar): string {
  return typeof node.value === 'string' ? node.value : (node.source ?? String(node.value))
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
