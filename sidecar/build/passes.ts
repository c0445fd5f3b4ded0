import type { Address } from '../../feedback/peer.ts'
import {
  declaredGroups,
  groupMeant,
  grpcAddress,
  hasVariables,
  type ProxyAddress,
  passPort,
  proxyAddress,
} from '../config/address.ts'
import { Fault } from '../config/fault.ts'
import type * as model from '../config/model.ts'
import type { IfBlock } from '../config/rewrite-model.ts'
import type { PeerGroup } from '../proxy/pools.ts'
import { fixedPass, variablePass } from '../proxy/proxy-pass.ts'
import type { ProxyPass } from '../proxy/route.ts'
import type { Finder } from './found-groups.ts'
import type { DefaultRedirect, PeerWay } from './settings.ts'
import { bytes, type Texts } from './texts.ts'

/** What passes are built upon. */
export interface PassEnv {
  /**
   * The group of an address of `proxy_pass`: a name, or `host:port` as written, whatever its letter case. Asked when
   * the routes are built, and at each request for a proxy_pass with variables.
   */
  group(authority: string): PeerGroup | undefined
  /**
   * What finds groups of addresses that no group of the configuration has.
   * @param levels from the outermost to the innermost
   */
  finder(levels: readonly model.Settings[]): Finder
}

/** A `proxy_pass` or a `grpc_pass`. */
export interface Pass {
  readonly url: string
  readonly grpc: boolean
  /** @throws Fault where the text is no address */
  parse(text: string): ProxyAddress
}

/** @returns undefined where the block passes nothing on */
export function passOf(block: model.LocationBlock | IfBlock): Pass | undefined {
  const { proxy_pass: url, grpc_pass: address } = block
  if (url !== undefined) return { url, grpc: false, parse: proxyAddress }
  return address === undefined ? undefined : { url: address, grpc: true, parse: grpcAddress }
}

/** How peers there are spoken to; undefined: there are none. */
export function wayOf(pass: Pass | undefined): PeerWay | undefined {
  if (pass === undefined) return undefined
  const { url, grpc, parse } = pass
  return { secure: hasVariables(url) || parse(url).secure, grpc }
}

/** `proxy_redirect default` undoes what proxy_pass does to paths. */
export function defaultRedirect(pass: Pass | undefined, path: string): DefaultRedirect | undefined {
  if (pass === undefined || pass.grpc || hasVariables(pass.url)) return undefined
  const { url } = pass
  const { uri } = proxyAddress(url)
  return uri === undefined ? { from: bytes(`${url}/`), to: '/' } : { from: bytes(url), to: path }
}

/** Finds where each pass of a configuration goes. */
export class Passes {
  readonly #env: PassEnv
  readonly #texts: Texts
  readonly #declared: ReadonlySet<string>

  constructor(http: model.HttpBlock, env: PassEnv, texts: Texts) {
    this.#env = env
    this.#texts = texts
    this.#declared = declaredGroups(http)
  }

  /**
   * @param path of the location that it stands in
   * @param levels settings from the outermost to the innermost
   */
  build({ url, parse }: Pass, path: string, levels: readonly model.Settings[]): ProxyPass {
    if (!hasVariables(url)) {
      const address = parse(bytes(url))
      return fixedPass(address, this.#group(address), path)
    }
    const parsed = (text: string) => {
      try {
        return parse(text)
      } catch (error) {
        // What it should be is said to those who write a configuration.
        if (error instanceof Fault) return error.message.replace(/, it is "http.*/, '')
        throw error
      }
    }
    const find = this.#env.finder(levels)
    return variablePass(
      this.#texts.compile(url),
      parsed,
      (address) => this.#group(address) ?? find(peerAddress(address)),
    )
  }

  #group(address: ProxyAddress): PeerGroup | undefined {
    return this.#env.group(groupMeant(address, this.#declared))
  }
}

function peerAddress(pass: ProxyAddress): Address {
  const { unix, host } = pass
  return unix ? { kind: 'unix', path: host } : { kind: 'tcp', host, port: passPort(pass) }
}
