import { Backends } from './backend.ts'
import { ask } from './client.ts'
import { freePort } from './free-port.ts'
import { type Lab, lab } from './invariants.ts'

/** Where all of them listen, each at a loopback address of its own. */
export const port = await freePort()
/** What stands for the servers that the configurations name. */
export const at = {
  'backend1.example.com': `127.0.0.1:${port}`,
  'backend2.example.com': `127.0.0.2:${port}`,
  'backend3.example.com': `127.0.0.3:${port}`,
  'backup1.example.com': `127.0.0.51:${port}`,
  '192.168.1.101:8000': `127.0.0.1:${port}`,
  '192.168.1.102:8000': `127.0.0.2:${port}`,
  '192.168.1.103:8000': `127.0.0.3:${port}`,
  '127.0.0.1:8000': `127.0.0.1:${port}`,
}

/** Peers A, B, C at the first of the addresses; each answers with its letter. */
export async function peers(count: number): Promise<Backends> {
  const made = new Backends()
  for (const letter of ['A', 'B', 'C'].slice(0, count)) {
    await made.add({ body: letter }, { host: `127.0.0.${made.list.length + 1}`, port })
  }
  return made
}

/** The program on an upstream block, with everything passed to it. */
export function inFront(
  upstream: string,
  { list }: Backends,
  location = 'location / { proxy_pass http://backend; }',
): Promise<Lab> {
  return lab(`${upstream}\n server { listen 127.0.0.1:PORT; ${location} }`, list)
}

/** Asks one after another and says who answered. */
export async function letters(lab: Lab, count: number, target = '/'): Promise<string> {
  let said = ''
  for (let i = 0; i < count; i++) {
    const reply = await ask(lab.port, target)
    said += reply.status === 200 ? reply.text : `(${reply.status})`
  }
  return said
}
