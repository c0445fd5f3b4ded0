import { type ProxyFault, type ProxyHeader, readProxyHeader } from './proxy-protocol.ts'

/** What a connection begins with where a PROXY header is expected: gathers it. */
export class Prelude {
  #bytes: Buffer | undefined = undefined

  /** @returns the header once it is whole; undefined as long as more of it is needed */
  add(chunk: Buffer): ProxyHeader | ProxyFault | undefined {
    this.#bytes = this.#bytes === undefined ? chunk : Buffer.concat([this.#bytes, chunk])
    return readProxyHeader(this.#bytes)
  }

  /** What came after a header; undefined for nothing. */
  rest({ length }: ProxyHeader): Buffer | undefined {
    const bytes = this.#bytes
    return bytes !== undefined && bytes.length > length ? bytes.subarray(length) : undefined
  }
}
