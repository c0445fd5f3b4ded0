import type { Context } from '../directive.ts'

/**
 * What may be said with directives that are refused otherwise, since it asks for no more than holds here anyway: that
 * something is off which there is not, or what nginx does unless told otherwise.
 */

const off = `
  auth_basic auth_request autoindex charset client_body_in_file_only create_full_put_path expires grpc_bind gunzip
  mirror proxy_bind proxy_cache proxy_cookie_domain proxy_cookie_flags proxy_cookie_path proxy_force_ranges
  proxy_store random_index recursive_error_pages server_name_in_redirect ssi ssl_ntls ssl_ocsp userid
`
const on = 'chunked_transfer_encoding'
const zero = 'limit_rate proxy_download_rate proxy_limit_rate proxy_upload_rate'
/** They say more of what there is not: when not to cache, how many of the checks have to pass. */
const anything = 'charset_types limit_rate_after proxy_cache_bypass proxy_no_cache satisfy'

/** `X-Accel-Buffering` alone of those that can be named is heeded here. */
const unheeded =
  /^(?:x-accel-(?:redirect|expires|limit-rate|charset)|expires|cache-control|set-cookie|vary)$/i

type Test = (words: readonly string[]) => boolean

const all = (pattern: RegExp): Test => {
  return (words) => words.length > 0 && words.every((word) => pattern.test(word))
}

const tests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ...names(off).map((name): [string, Test] => [name, all(/^off$/)]),
  ...names(on).map((name): [string, Test] => [name, all(/^on$/)]),
  ...names(zero).map((name): [string, Test] => [name, all(/^0$/)]),
  ...names(anything).map((name): [string, Test] => [name, all(/^/)]),
  ['grpc_ignore_headers', all(unheeded)],
  ['proxy_ignore_headers', all(unheeded)],
])

/** Whether a directive asks for nothing but what is so anyway. @param words its arguments */
export function isIdle(name: string, words: readonly string[], context: Context): boolean {
  if (context === 'main' || context.endsWith('upstream')) return false
  return tests.get(name)?.(words) ?? false
}

/** Names and arguments, for the reference. */
export const idleNames: readonly string[] = [
  ...names(off).map((name) => `${name} off`),
  ...names(on).map((name) => `${name} on`),
  ...names(zero).map((name) => `${name} 0`),
  ...names(anything),
  'grpc_ignore_headers FIELD',
  'proxy_ignore_headers FIELD',
].sort()

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
