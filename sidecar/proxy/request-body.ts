import { type BodyFault, RequestBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import type { BodyFraming } from './headers.ts'

/** What is sent to a peer as the request's body: the client's, one that the configuration sets, or none. */
export type PeerBody = RequestBody | Buffer | undefined

/** How long a client that expects a 100 waits for it when no peer has answered, milliseconds. */
const continueAfter = 100

/** Status for a client whose body could not be taken. */
export function bodyFaultStatus(fault: BodyFault): number {
  return fault === 'too_large' ? 413 : fault === 'timeout' ? 408 : 499
}

/**
 * Makes the body of an exchange ready to be sent.
 * @returns the body; or the status to refuse the request with
 */
export async function requestBody(exchange: Exchange): Promise<{ body: PeerBody } | { refused: number }> {
  const { settings, call, request } = exchange
  const length = announced(exchange)
  if (length === 0) return { body: configured(exchange) }
  if (!exchange.body) {
    const limit = settings.clientMaxBodySize
    if (length !== undefined && limit > 0 && length > limit) {
      // Whether to read it first is not the client's choice: the answer comes at once and the connection ends.
      exchange.body = unread(exchange, length)
      return { refused: 413 }
    }
    exchange.body = new RequestBody(request, length, {
      limit,
      replay: settings.replayBuffer,
      timeout: settings.clientBodyTimeout,
      onBytes: (count) => {
        call.requestLength += count
      },
    })
  }
  const { body } = exchange
  const passed = !settings.setBody && settings.passRequestBody
  // An attempt before an error page led here has used up its beginning: the rest alone is no request.
  if (passed && !body.replayable) return { refused: body.fault ? bodyFaultStatus(body.fault) : 502 }
  if (exchange.request.head.expectsContinue && !exchange.response.headersSent) {
    inviteBody(exchange)
    // The head goes to the peer first: a peer that refuses the body should not have to take it.
    return { body: passed ? body : configured(exchange) }
  }
  if (settings.requestBuffering || settings.setBody) {
    const fault = await body.gather()
    if (fault) return { refused: bodyFaultStatus(fault) }
    if (body.complete) call.body = body.take()
  }
  if (!passed) return { body: configured(exchange) }
  return { body: body.complete ? call.body : body }
}

/** How the body is framed towards a peer. */
export function bodyFraming(exchange: Exchange, body: PeerBody): BodyFraming {
  if (body === undefined) {
    // A method that defines a body says that there is none; an empty body of a client stays one.
    const { method } = exchange.call
    const expected = method === 'POST' || method === 'PUT' || method === 'PATCH'
    return expected || exchange.call.header('content-length') !== undefined
      ? { kind: 'length', length: 0 }
      : { kind: 'none' }
  }
  if (Buffer.isBuffer(body)) return { kind: 'length', length: body.length }
  return body.length === undefined ? { kind: 'chunked' } : { kind: 'length', length: body.length }
}

function configured(exchange: Exchange): Buffer | undefined {
  const text = exchange.settings.setBody?.(exchange.call)
  return text === undefined || text === '' ? undefined : Buffer.from(text, 'latin1')
}

/** @returns 0 for no body, undefined for one whose length is not announced */
function announced(exchange: Exchange): number | undefined {
  const { framing, bodyLength } = exchange.request.head
  return framing === 'chunked' ? undefined : bodyLength
}

function unread(exchange: Exchange, length: number): RequestBody {
  return new RequestBody(exchange.request, length, {
    limit: 0,
    replay: 0,
    timeout: exchange.settings.clientBodyTimeout,
    onBytes: () => {},
  })
}

/** Sends 100 once a peer has had time to say no. */
function inviteBody(exchange: Exchange): void {
  const { response } = exchange
  if (exchange.invited) return
  exchange.invited = true
  const timer = setTimeout(() => {
    if (!response.headersSent && !exchange.gone) response.interim(100, 'Continue', [])
  }, continueAfter)
  response.whenClosed(() => clearTimeout(timer))
}
