import {
  type CallOptions,
  Client,
  type ClientOptions,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerErrorResponse,
  type ServiceDefinition,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js'

/** What is said in a call: any text. Written by hand: no compiler is needed for that. */
const text = {
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
}

/** A service with one call of each kind. */
export const service = {
  unary: { path: '/test.Talk/unary', requestStream: false, responseStream: false, ...text },
  collect: { path: '/test.Talk/collect', requestStream: true, responseStream: false, ...text },
  recite: { path: '/test.Talk/recite', requestStream: false, responseStream: true, ...text },
  chat: { path: '/test.Talk/chat', requestStream: true, responseStream: true, ...text },
} satisfies ServiceDefinition

/** What a peer does; what is left out it does not know. */
export interface Talk {
  readonly unary?: handleUnaryCall<string, string>
  readonly collect?: handleClientStreamingCall<string, string>
  readonly recite?: handleServerStreamingCall<string, string>
  readonly chat?: handleBidiStreamingCall<string, string>
}

/** A server of gRPC in this process. */
export class GrpcPeer implements AsyncDisposable {
  readonly port: number
  /** Calls that have begun. */
  calls = 0
  readonly #server: Server

  constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Takes no more calls; those that run go on. */
  shutDown(): Promise<void> {
    return new Promise((resolve) => this.#server.tryShutdown(() => resolve()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown()
    return Promise.resolve()
  }
}

/** Starts a peer. @param port 0 takes a free one */
export async function grpcPeer(
  talk: Talk | ((peer: GrpcPeer) => Talk),
  port = 0,
  options: Readonly<Record<string, number>> = {},
): Promise<GrpcPeer> {
  const server = new Server(options)
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, found) => {
      if (error) reject(error)
      else resolve(found)
    })
  })
  const peer = new GrpcPeer(server, bound)
  const handlers = typeof talk === 'function' ? talk(peer) : talk
  const counted: Record<string, (...args: never[]) => void> = {}
  for (const [name, handler] of Object.entries(handlers)) {
    counted[name] = (...args) => {
      peer.calls += 1
      handler(...args)
    }
  }
  // Handlers of the four kinds have nothing in common that TypeScript could see.
  server.addService(service, counted as never)
  return peer
}

/** How a call ended. */
export interface Called {
  readonly code: number
  readonly details: string
  readonly messages: readonly string[]
  /** Fields of the head of the answer. */
  readonly head: Metadata
  readonly trailers: Metadata
}

/** A client of gRPC: one connection. */
export class GrpcClient implements Disposable {
  readonly client: Client

  constructor(port: number, options: ClientOptions = {}) {
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      ...options,
    })
  }

  unary(
    message: string,
    options: CallOptions = {},
    fields: Readonly<Record<string, string | Buffer>> = {},
  ): Promise<Called> {
    const { path, requestSerialize, responseDeserialize } = service.unary
    return new Promise((resolve) => {
      const messages: string[] = []
      const call = this.client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        message,
        metadata(fields),
        options,
        (_error: ServiceError | null, answer?: string) => {
          if (answer !== undefined) messages.push(answer)
        },
      )
      resolve(ended(call, messages))
    })
  }

  chat(options: CallOptions = {}, fields: Readonly<Record<string, string | Buffer>> = {}) {
    const { path, requestSerialize, responseDeserialize } = service.chat
    return this.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata(fields),
      options,
    )
  }

  recite(message: string, options: CallOptions = {}) {
    const { path, requestSerialize, responseDeserialize } = service.recite
    return this.client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, message, options)
  }

  collect(messages: readonly string[], options: CallOptions = {}): Promise<Called> {
    const { path, requestSerialize, responseDeserialize } = service.collect
    return new Promise((resolve) => {
      const answers: string[] = []
      const call = this.client.makeClientStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        new Metadata(),
        options,
        (_error: ServiceError | null, answer?: string) => {
          if (answer !== undefined) answers.push(answer)
        },
      )
      for (const message of messages) call.write(message)
      call.end()
      resolve(ended(call, answers))
    })
  }

  [Symbol.dispose](): void {
    this.client.close()
  }
}

/** A call whose end can be waited for. */
interface Ending {
  on(event: 'status', listener: (status: StatusObject) => void): unknown
  on(event: 'metadata', listener: (metadata: Metadata) => void): unknown
}

/** Waits for the end of a call. @param messages what has come is put there by others */
export function ended(call: Ending, messages: readonly string[] = []): Promise<Called> {
  return new Promise((resolve) => {
    let head = new Metadata()
    call.on('metadata', (fields) => {
      head = fields
    })
    call.on('status', ({ code, details, metadata }) => {
      // The answer of a unary call is told of in the same turn.
      setImmediate(() => resolve({ code, details, messages, head, trailers: metadata }))
    })
  })
}

/** The failure that a handler answers with. */
export function failing(code: number, details = ''): ServerErrorResponse {
  return Object.assign(new Error(details), { code, details })
}

function metadata(fields: Readonly<Record<string, string | Buffer>>): Metadata {
  const made = new Metadata()
  for (const [name, value] of Object.entries(fields)) made.set(name, value)
  return made
}
