import { Variables } from '../../feedback/variables.ts'
import type { Settings } from '../../sidecar/proxy/route.ts'
import { defaultSettings } from '../../sidecar/proxy/settings.ts'

export const variables = new Variables()

/** What a location says of its answers where it says little. */
export const settings = (changed: Partial<Settings> = {}): Settings => ({ ...defaultSettings, ...changed })

/** One `add_header`. */
export const added = (name: string, value: string, always = false) => ({
  name,
  lower: name.toLowerCase(),
  value: variables.compile(value),
  always,
})

/** Value of the first of these fields, which are names and values in turn. */
export function field(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === name)
  return at < 0 ? undefined : headers[at + 1]
}
