import assert from 'node:assert/strict'
import { copyFileSync, renameSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Issued, Issuer } from '../../support/authority.ts'
import { backend } from '../../support/backend.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const otherRoot = issuer.root('other-root')
const first = issuer.issue('first', { by: root, hosts: ['good.test'] })
const second = issuer.issue('second', { by: otherRoot, hosts: ['good.test'] })
const [certFile, keyFile, caFile] = ['live.crt', 'live.key', 'live.ca'].map(
  (name) => `${issuer.folder}/${name}`,
) as [string, string, string]

/** Puts a certificate where the program reads it, as whoever renews certificates does. */
function install({ certFile: cert, keyFile: key }: Issued): void {
  for (const [from, to] of [
    [cert, certFile],
    [key, keyFile],
  ] as const) {
    copyFileSync(from, `${to}.new`)
    renameSync(`${to}.new`, to)
  }
}

async function shown(sidecar: Sidecar): Promise<string> {
  using client = await dialTls(sidecar.port)
  return client.secure.getPeerCertificate().subject.CN as string
}

const config = (peer: string, more = '') => `
${more}
http {
  access_log off;
  server {
    listen 127.0.0.1:PORT ssl;
    ssl_certificate ${certFile};
    ssl_certificate_key ${keyFile};
    location / { proxy_pass http://${peer}; }
  }
}`

for (const threads of [1, 2]) {
  test(`certificates change under load without a failed request, with ${threads} thread${threads > 1 ? 's' : ''}`, async () => {
    install(first)
    await using peer = await backend({ body: 'x' })
    await using sidecar = await start(config(peer.address, `worker_processes ${threads};`))
    const failures: string[] = []
    let answered = 0
    let over = false
    const keep = await dialTls(sidecar.port)
    const load = async (requests: number) => {
      while (!over) {
        try {
          using client = await dialTls(sidecar.port)
          for (let i = 0; i < requests && !over; i++) {
            const reply = await client.ask('/')
            if (reply.status === 200 && reply.complete) answered += 1
            else failures.push(`${reply.status}`)
          }
        } catch (error) {
          failures.push(String(error))
        }
      }
    }
    const clients = Promise.all([load(1), load(1), load(20), load(20)])
    for (const issued of [second, first, second]) {
      await sleep(150)
      install(issued)
      await sidecar.reload()
      assert.equal(await shown(sidecar), issued.name)
      assert.equal((await keep.ask('/')).status, 200, 'the connection from before goes on')
    }
    over = true
    await clients
    keep.close()
    assert.deepEqual(failures, [])
    assert.ok(answered > 100, `${answered} answers`)
  })
}

test('with a certificate that is none, what is served goes on, and it is said what is wrong', async () => {
  install(first)
  await using peer = await backend({ body: 'x' })
  await using sidecar = await start(config(peer.address))
  const refused = async () => {
    const response = await sidecar.askReload()
    return ((await response.json()) as { error: string }).error
  }
  writeFileSync(certFile, 'no certificate')
  assert.match(
    await refused(),
    /cannot load certificate ".*live\.crt": no PEM text in it in .*evenkeel\.conf:\d+/,
  )
  install(first)
  copyFileSync(second.keyFile, keyFile)
  assert.match(await refused(), /certificate ".*live\.crt" and key ".*live\.key" do not belong together/)
  assert.equal(await shown(sidecar), 'first')
  assert.equal(await sidecar.generation(), 1)
  install(second)
  await sidecar.reload()
  assert.equal(await shown(sidecar), 'second')
})

test('certificates that are watched are taken over as they change, once both files have', async () => {
  install(first)
  await using peer = await backend({ body: 'x' })
  await using sidecar = await start(config(peer.address, 'config_watch on;'))
  const client = await dialTls(sidecar.port)
  install(second)
  await eventually('the new one is shown', async () => (await shown(sidecar)) === 'second')
  assert.equal((await client.ask('/')).status, 200)
  client.close()
  // Half of it is not enough.
  copyFileSync(first.certFile, certFile)
  await sidecar.logged(/\[emerg\].*do not belong together/)
  assert.equal(await shown(sidecar), 'second')
  copyFileSync(first.keyFile, keyFile)
  await eventually('the first one is shown again', async () => (await shown(sidecar)) === 'first')
})

test('authorities of peers that change decide over connections from then on, kept ones too', async () => {
  copyFileSync(root.certFile, caFile)
  await using peer = await backend({ body: 'x' }, { tls: { cert: first.cert, key: first.key } })
  await using sidecar = await start(`http {
    access_log off;
    upstream u { zone u 64k; server ${peer.address}; }
    server {
      listen 127.0.0.1:PORT;
      proxy_ssl_verify on; proxy_ssl_trusted_certificate ${caFile}; proxy_ssl_name good.test;
      location / { proxy_pass https://u; }
    }
  }`)
  const status = async () => (await fetch(sidecar.url)).status
  assert.equal(await status(), 200)
  await sidecar.reload()
  assert.equal(await status(), 200)
  assert.equal(peer.connections, 1)
  copyFileSync(otherRoot.certFile, caFile)
  await sidecar.reload()
  assert.equal(await status(), 502)
})
