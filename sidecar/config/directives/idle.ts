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

/** What does the work here of directives that are refused: `, ` and a hint; empty where there is none. */
export function advice(name: string, context: Context): string {
  const key = context.startsWith('stream') ? `${name} (stream)` : name
  const text = hints.get(key) ?? hints.get(name)
  return text === undefined ? '' : `, ${text}`
}

const connectionsHint = '"max_conns" and "queue" of a group limit what comes to its peers'
const tlsHint = 'see "ssl_protocols", "ssl_ciphers" and "ssl_ecdh_curve"'
const peerTlsHint = 'see "proxy_ssl_protocols" and "proxy_ssl_ciphers"'

const hints: ReadonlyMap<string, string> = new Map([
  ['limit_conn', connectionsHint],
  ['limit_req', connectionsHint],
  ['pass (stream)', '"proxy_pass" with the address of the other server does the same'],
  ['proxy_ssl_conf_command', peerTlsHint],
  ['grpc_ssl_conf_command', peerTlsHint.replaceAll('proxy', 'grpc')],
  ['server_name (stream)', 'a "map" of $ssl_preread_server_name can choose the group of "proxy_pass"'],
  ['split_clients', '"split" of a group shares by percentages'],
  ['ssl_conf_command', tlsHint],
  ['stub_status', '"api /status/;" and "prometheus all;" tell the same'],
])

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
