import type { Static, TSchema } from 'typebox'

/** Where a directive may stand. `if` is one in a location, `server if` one beside the locations. */
export const contexts = [
  'main',
  'http',
  'upstream',
  'server',
  'location',
  'if',
  'server if',
  'stream',
  'stream upstream',
  'stream server',
] as const
export type Context = (typeof contexts)[number]

/** What a directive puts into the model. */
export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value }

/** An argument as a text, a list of texts, texts by name, or `true` for a bare word. */
export type Part = string | readonly string[] | Readonly<Record<string, string>> | true

/** A directive with arguments. One entry serves both syntaxes, the editor's schema and the reference. */
export interface Directive<S extends TSchema = TSchema> {
  readonly name: string
  readonly in: readonly Context[]
  /** One line for the reference. */
  readonly doc: string
  /** What holds where the directive does not stand, as nginx would write it. */
  readonly default?: string
  /** One occurrence: a scalar, a list of scalars, or an object of arguments. */
  readonly args: S
  /** Arguments of an object that stand as bare words, in order; the others are `name=value`, flags `name`. */
  readonly words?: readonly string[]
  /** Occurrences add up to a list; otherwise a second one is a duplicate. */
  readonly many?: true
  /** Occurrences add up to one object; an argument that stands in two of them is a duplicate. */
  readonly merge?: true
  /** Its arguments are another directive, one of these, name and all; in YAML that one's name is a key. */
  readonly inner?: readonly Directive[]
  /** `off` may stand alone in place of the arguments. */
  readonly off?: true
  /** Key in the model, where it is not the name: another directive's (a second name), or a plural. */
  readonly key?: string
  /** Goes to the ordered list `rewrites` of its level. */
  readonly step?: true
  /** A balancing method: only one may stand in a group. */
  readonly method?: true
  /** Nothing obeys it, or these of its arguments, so far: read, checked, kept, and named in a notice. */
  readonly unheeded?: true | readonly string[]
  /** Arguments, or words of a list, that are accepted, left out and named in a notice. */
  readonly ignored?: readonly string[]
  /** Arguments that are refused by name. */
  readonly later?: readonly string[]
  /** Second names of arguments. */
  readonly alias?: Readonly<Record<string, string>>
  /** The arguments in nginx's words, where `words` cannot say it. */
  split?(words: readonly string[]): Readonly<Record<string, Part>>
  /** A notice about a value that is obeyed in another way than one may expect. */
  remark?(value: Static<S>): string | undefined
  /** Text for a word that does not fit; `invalid parameter "…"` and the like where absent. */
  wrong?(word: string): string
  /** Text for an argument by a name that there is not; `invalid parameter "…"` where absent. */
  stray?(token: string): string
  /** So many words have to stand in nginx's syntax; where absent the schema says it. */
  readonly leastWords?: number
  /** How it is written in nginx's syntax, for the reference, where that does not follow from the schema. */
  readonly syntax?: string
  /** What the schema cannot check (throws a Fault), and the canonical form. */
  tidy?(value: Static<S>): Value
}

/** Declares a directive, so that `tidy` sees the type that its schema has. */
export function directive<S extends TSchema>(entry: Directive<S>): Directive {
  return entry
}

/** A directive with a block. */
export interface Block {
  readonly name: string
  readonly in: readonly Context[]
  readonly doc: string
  /** What may stand inside; the last three have their own readers. */
  readonly inside: Context | 'map' | 'template'
  /** Key in the model. */
  readonly key: string
  /** One block, a list of them, or many of them by name. */
  readonly form: 'one' | 'list' | 'named'
  /** Number of arguments in nginx syntax, least and most. */
  readonly args: readonly [number, number]
  /** Name and, for maps, other content from nginx's words. Throws a Fault. */
  label?(words: readonly string[]): { readonly name: string; readonly source?: string }
}
