/** Why something could not be shared; the message is for people. */
export class LinkError extends Error {
  override readonly name = 'LinkError'
}

/** What was reached, and is not what it should be; the message is for people. */
export class UnfitError extends Error {
  override readonly name = 'UnfitError'
}

/** An error that the server answered with. */
export interface Refusal {
  /** The first word: `READONLY`, `OOM`, `ERR`; `UNFIT` where it is not what it should be. */
  readonly code: string
  /** For people, without anything secret. */
  readonly text: string
}

/** Refusals that everything sent to this server meets, so that another one, or a later try, is called for. */
const lasting: Readonly<Record<string, string>> = {
  READONLY: 'it is a read-only replica',
  LOADING: 'it is still loading its data',
  MASTERDOWN: 'it is a replica without its master',
  CLUSTERDOWN: 'the cluster is down',
  NOAUTH: 'it asks for a password',
  WRONGPASS: 'wrong user or password',
  NOPERM: 'the user may not do what is needed',
  MISCONF: 'it takes no writes since it cannot save them',
  NOREPLICAS: 'it takes no writes without its replicas',
  BUSY: 'it is busy with a script',
  MOVED: 'it is part of a cluster, and that was not said',
}

/** What the operating system, DNS and TLS say. */
const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  ETIMEDOUT: 'no answer in time',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EHOSTDOWN: 'host down',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found: the name server does not answer',
  EMFILE: 'too many open files',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not trusted',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not trusted',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS',
}

/** Whether everything else sent there would be refused as well. */
export function isLasting(refusal: Refusal): boolean {
  return Object.hasOwn(lasting, refusal.code)
}

/** @returns undefined where it is no answer of a server */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof Error)) return undefined
  const unfit = unfitness(error)
  if (unfit !== undefined) return { code: 'UNFIT', text: unfit }
  if (nodeError(error)) return refusalOf(nodeError(error))
  if (error.name !== 'ReplyError') return undefined
  // Before Redis 7 an error inside a script comes wrapped: `ERR Error running script (call to f_…): …: -READONLY You…`.
  const inner = /^ERR Error running script.*? -?([A-Z]{2,} .*)$/s.exec(error.message)?.[1]
  const message = inner ?? error.message
  const code = /^-?([A-Z]+)\b/.exec(message)?.[1] ?? 'ERR'
  const known = Object.hasOwn(lasting, code) ? lasting[code]! : undefined
  // NOPERM says which command or key; where in the script it was tells people nothing.
  const said = printable(message.replace(/^-?ERR\s+/, '').replace(/\s*script: [0-9a-f]{40}.*$/s, ''))
  return { code, text: code === 'NOPERM' || known === undefined ? said : known }
}

/** What an error tells of who answered, where that is not a Redis of the kind that was asked for. */
function unfitness(error: Error): string | undefined {
  if (error instanceof UnfitError) return printable(error.message)
  const type = /^Unknown RESP type (\d+)\b/.exec(error.message)?.[1]
  // An alert of TLS is what a server that speaks it answers to plain text.
  if (type !== undefined)
    return type === '21' ? 'it speaks TLS, use rediss://' : 'what answers there is not Redis'
  if (error.name !== 'ReplyError') return undefined
  return /cluster support disabled/.test(error.message) ? 'it is not a cluster' : undefined
}

/** What the last of the nodes said, where a cluster as a whole was not found. */
function nodeError(error: Error): unknown {
  return error.name === 'ClusterAllFailedError' && 'lastNodeError' in error ? error.lastNodeError : undefined
}

/** Why there is no connection, in words for people. */
export function failureText(error: unknown): string {
  const refusal = refusalOf(error)
  if (refusal !== undefined) return refusal.text
  if (!(error instanceof Error)) return printable(String(error))
  const node = nodeError(error)
  if (node) return failureText(node)
  // Several addresses of one name were tried: the last one says as much as the others.
  if (error instanceof AggregateError && error.errors.length > 0) return failureText(error.errors.at(-1))
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (Object.hasOwn(failures, code)) return failures[code]!
  if (error.message === 'Connection is closed.') return 'connection closed'
  // Of a node of a cluster.
  if (error.message === 'timeout') return failures.ETIMEDOUT!
  return printable(error.message)
}

/** Text from the network on one line of reasonable length. */
function printable(text: string): string {
  const line = text.replaceAll(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
