import { type Method, wordsOf } from '../balance/method.ts'
import { defaultMethod, methods } from '../balance/methods.ts'
import { methodOf } from '../config/check/upstreams.ts'
import { ConfigError } from '../config/error.ts'
import { loadText } from '../config/load.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'

/** A method that is tried, with its arguments. */
export interface Contender {
  /** As it would be written in a configuration. */
  readonly words: string
  readonly method: Method
  readonly args: Readonly<Record<string, unknown>>
}

/** What is tried beside the configuration's own method unless told otherwise. */
export const usualWords = [
  'round_robin',
  'least_conn',
  'random two',
  'least_time last_byte plain',
  'least_time last_byte',
  'least_time last_byte best',
  'feedback $upstream_http_x_drain_time inverse',
  'ip_hash',
  'hash $request_uri consistent',
]

/** The method of a group. */
export function contenderOf(block: UpstreamBlock): Contender {
  const { name, args } = methodOf(block)
  const method: Method = methods.find((method) => method.name === name) ?? defaultMethod
  return { words: wordsOf(method, args), method, args }
}

/** Whether what other sidecars have seen means anything to the method. */
export function shares({ method, args }: Contender): boolean {
  const learning = method.learning(args, () => () => '')
  return learning !== undefined && learning.plain !== true
}

/**
 * Reads a method as it would be written in an `upstream` block.
 * @throws ConfigError with the text that the configuration would have
 */
export function readContender(words: string): Contender {
  const line = words === defaultMethod.name ? '' : `${words};`
  const text = `http { upstream simulated { ${line} server 127.0.0.1; } }`
  const { model } = loadText(text, words, 'nginx')
  const contender = contenderOf(model.http?.upstreams?.['simulated'] ?? {})
  if (contender.method === defaultMethod && words !== defaultMethod.name) {
    throw new ConfigError(words, 0, `"${words}" is no balancing method`)
  }
  return contender
}
