import type { Call } from '../call.ts'
import type { CallCertificate, CallTls } from '../call-tls.ts'

type Read = (call: Call) => string

/** Of the connection; empty where it does not speak TLS. */
const of =
  (read: (tls: CallTls) => string): Read =>
  ({ tls }) =>
    tls === undefined ? '' : read(tls)

/** Of the client's certificate; empty where it has shown none. */
const shown = (read: (certificate: CallCertificate) => string): Read =>
  of(({ certificate }) => (certificate === undefined ? '' : read(certificate)))

/** nginx's form for a header: every line but the first begins with a tab, and no line feed at the end. */
const folded = ({ pem }: CallCertificate): string => pem.trimEnd().replaceAll('\n', '\n\t')

const escaped = ({ pem }: CallCertificate): string =>
  encodeURIComponent(pem).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

const dayMs = 86_400_000

function daysLeft({ validTo }: CallCertificate): string {
  const left = Date.parse(validTo) - Date.now()
  return Number.isNaN(left) ? '' : `${Math.max(0, Math.floor(left / dayMs))}`
}

/** Variables of TLS from clients: nginx's names and meanings. */
export const tlsVariables: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['ssl_protocol', of(({ protocol }) => protocol)],
  ['ssl_cipher', of(({ cipher }) => cipher)],
  ['ssl_server_name', of(({ serverName }) => serverName)],
  ['ssl_session_reused', of(({ reused }) => (reused ? 'r' : '.'))],
  ['ssl_alpn_protocol', of(({ alpn }) => alpn)],
  ['ssl_ciphers', of(({ ciphers }) => ciphers)],
  ['ssl_curves', of(({ curves }) => curves)],
  ['ssl_client_verify', of(({ verify }) => verify)],
  ['ssl_client_s_dn', shown(({ subject }) => subject)],
  ['ssl_client_i_dn', shown(({ issuer }) => issuer)],
  ['ssl_client_s_dn_legacy', shown(({ subjectLegacy }) => subjectLegacy)],
  ['ssl_client_i_dn_legacy', shown(({ issuerLegacy }) => issuerLegacy)],
  ['ssl_client_serial', shown(({ serial }) => serial)],
  ['ssl_client_fingerprint', shown(({ fingerprint }) => fingerprint)],
  ['ssl_client_cert', shown(folded)],
  ['ssl_client_escaped_cert', shown(escaped)],
  ['ssl_client_raw_cert', shown(({ pem }) => pem)],
  ['ssl_client_v_start', shown(({ validFrom }) => validFrom)],
  ['ssl_client_v_end', shown(({ validTo }) => validTo)],
  ['ssl_client_v_remain', shown(daysLeft)],
])
