import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { Issuer } from '../../support/authority.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const locked = issuer.issue('a.test', { passPhrase: 'secret' })
const passwords = issuer.write('passwords', 'nothing\nsecret\n')

const config = (more: string) => `
worker_processes 2;
http {
  access_log off;
  server {
    listen 127.0.0.1:PORT ssl;
    ssl_certificate ${locked.certFile};
    ssl_certificate_key ${locked.keyFile};
    ssl_password_file ${passwords};
    ${more}
    location / { return 200 $ssl_session_reused; }
  }
}`

async function session({ port }: Sidecar): Promise<Buffer> {
  using client = await dialTls(port)
  const made = once(client.secure, 'session')
  await client.ask('/')
  return (await made)[0] as Buffer
}

/** How many of so many connections take the session up again. */
async function reused({ port }: Sidecar, kept: Buffer, times: number): Promise<number> {
  let count = 0
  for (let i = 0; i < times; i++) {
    using client = await dialTls(port, { session: kept })
    if ((await client.ask('/')).text === 'r') count += 1
  }
  return count
}

test('a session of one thread is taken up again by every other, and by other instances that have the key', async () => {
  const files = `ssl_session_ticket_key ${issuer.write('tickets.key', randomBytes(80))};`
  await using one = await start(config(files))
  await using other = await start(config(files))
  await using stranger = await start(config(''))
  const kept = await session(one)
  assert.equal(await reused(one, kept, 8), 8)
  assert.equal(await reused(other, kept, 4), 4)
  assert.equal(await reused(stranger, kept, 2), 0)
})

test('a session of one thread is taken up again by every other without a key file too', async () => {
  await using sidecar = await start(config('ssl_session_timeout 1h; ssl_session_cache shared:TLS:1m;'))
  assert.equal(await reused(sidecar, await session(sidecar), 8), 8)
})

test('without tickets no session is taken up again', async () => {
  await using sidecar = await start(config('ssl_session_tickets off;'))
  using client = await dialTls(sidecar.port, { maxVersion: 'TLSv1.2' })
  const kept = client.secure.getSession()!
  assert.equal(await reused(sidecar, kept, 2), 0)
})
