import type { Sidecar } from './sidecar.ts'

/** An answer of the admin server to a change. */
export interface ChangeAnswer {
  readonly status: number
  readonly error?: string
  readonly changed?: boolean
  readonly peers?: readonly { readonly name: string; readonly state: string; readonly weight: number }[]
  readonly changes?: readonly { readonly change: string; readonly value?: unknown; readonly file?: unknown }[]
}

/** Asks the admin server to change something of a group. @param path behind `/upstreams/` */
export async function change(
  sidecar: Sidecar,
  method: 'PATCH' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ChangeAnswer> {
  const response = await fetch(`${sidecar.admin}/upstreams/${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // The admin server answers with an object, whatever the status.
  return { status: response.status, ...((await response.json()) as object) }
}
