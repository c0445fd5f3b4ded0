import type * as model from '../config/stream-model.ts'
import { Trusted } from '../net/trusted.ts'
import { sessionDefaults as d, type SessionSettings } from '../stream/settings.ts'
import { budgetOf, dropAfter, ms, size } from './settings.ts'

/** Finds the value of a key: that of the innermost level that has it. */
type Find = <K extends keyof model.StreamSettings>(key: K) => model.StreamSettings[K] | undefined

/** @param levels from the outermost to the innermost; a key that a level has hides that of the outer ones as a whole */
export function sessionSettings(levels: readonly model.StreamSettings[]): SessionSettings {
  const find: Find = (key) => levels.findLast((level) => level[key] !== undefined)?.[key]
  const from = find('set_real_ip_from')
  const protocol = find('proxy_protocol') ?? false
  return {
    connectTimeout: ms(find('proxy_connect_timeout'), d.connectTimeout),
    timeout: ms(find('proxy_timeout'), d.timeout),
    retry: {
      ...d.retry,
      on: (find('proxy_next_upstream') ?? true) ? d.retry.on : new Set(),
      tries: find('proxy_next_upstream_tries') ?? d.retry.tries,
      timeout: ms(find('proxy_next_upstream_timeout'), d.retry.timeout),
      budget: budgetOf(find('proxy_next_upstream_budget')),
    },
    dropAfter: dropAfter(find('proxy_connection_drop')),
    halfClose: find('proxy_half_close') ?? d.halfClose,
    bufferSize: size(find('proxy_buffer_size'), d.bufferSize),
    proxyProtocol: protocol === true ? 'v1' : protocol === false ? undefined : protocol,
    proxyProtocolTimeout: ms(find('proxy_protocol_timeout'), d.proxyProtocolTimeout),
    handshakeTimeout: ms(find('ssl_handshake_timeout'), d.handshakeTimeout),
    peerTls: undefined,
    preread: find('ssl_preread') ?? d.preread,
    prereadTimeout: ms(find('preread_timeout'), d.prereadTimeout),
    prereadBufferSize: size(find('preread_buffer_size'), d.prereadBufferSize),
    trusted: from && new Trusted(from),
    responses: find('proxy_responses'),
    requests: find('proxy_requests') ?? d.requests,
  }
}
