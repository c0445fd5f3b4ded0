import { Type } from '../../../feedback/schema-type.ts'
import { flag, time } from '../schema.ts'

/** How long what is under way may go on after its peer has left. */
export const dropArgs = {
  name: 'proxy_connection_drop',
  default: 'off',
  args: Type.Union([flag, time]),
  wrong: (word: string) => `invalid value "${word}"`,
} as const
