import type { Context } from '../directive.ts'

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
