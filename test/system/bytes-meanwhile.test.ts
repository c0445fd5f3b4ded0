import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { echo as answerAll, backend } from '../support/backend.ts'
import { dial, webSocket } from '../support/client.ts'
import { start } from '../support/sidecar.ts'
import { echoPeer } from '../support/tcp-peer.ts'
import { udpClient } from '../support/udp-client.ts'
import { udpPeer } from '../support/udp-peer.ts'
import { until } from '../support/until.ts'

/** Bytes of what goes on for long are counted meanwhile. */

interface Data {
  readonly sent: number
  readonly received: number
}

interface Tree {
  readonly http: {
    readonly upstreams: Upstreams
    readonly server_zones: Readonly<Record<string, { readonly data: Data }>>
  }
  readonly stream: {
    readonly upstreams: Upstreams
    readonly server_zones: Readonly<Record<string, { readonly data: Data }>>
  }
}

type Upstreams = Readonly<
  Record<string, { readonly peers: Readonly<Record<string, { readonly data: Data }>> }>
>

for (const threads of [1, 2]) {
  test(`bytes of sessions and of long answers are counted while they pass: ${threads} thread(s)`, async () => {
    await using echo = await echoPeer()
    await using chatty = await backend()
    chatty.script = answerAll
    await using datagrams = await udpPeer((reply, datagram) => reply(datagram))
    const web = createServer(async (_, response) => {
      response.writeHead(200, { 'Content-Length': 400_000 })
      response.write(Buffer.alloc(100_000))
      await wait(1100)
      response.write(Buffer.alloc(100_000))
      await wait(1100)
      response.end(Buffer.alloc(200_000))
    })
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
    // A listening TCP server has an address.
    const { port } = web.address() as AddressInfo
    await using sidecar = await start(`
      worker_processes ${threads};
      http {
        upstream chat { zone chat 64k; server ${chatty.address}; }
        server { listen 127.0.0.1:PORT4; status_zone chat;
          location / { proxy_pass http://chat; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } }
        upstream web { zone web 64k; server 127.0.0.1:${port}; }
        server { listen 127.0.0.1:PORT; location / { proxy_pass http://web; } } }
      stream {
        upstream tcp { zone tcp 64k; server ${echo.address}; }
        upstream udp { zone udp 64k; server ${datagrams.address}; }
        server { listen 127.0.0.1:PORT2; proxy_pass tcp; status_zone tcp; }
        server { listen 127.0.0.1:PORT3 udp; proxy_pass udp; status_zone udp; proxy_timeout 2s; } }`)
    const data = async () => {
      const { http, stream } = await sidecar.json<Tree>('/status')
      const of = (upstreams: Upstreams, name: string): Data => Object.values(upstreams[name]!.peers)[0]!.data
      const { tcp, udp } = stream.server_zones
      return {
        web: of(http.upstreams, 'web'),
        chat: [of(http.upstreams, 'chat').received, http.server_zones['chat']!.data.sent],
        tcp: [of(stream.upstreams, 'tcp'), tcp!.data],
        udp: [of(stream.upstreams, 'udp'), udp!.data],
      }
    }
    const { client: chat } = await webSocket(sidecar.ports['PORT4']!)
    const both = (bytes: number): Data[] => Array(2).fill({ sent: bytes, received: bytes })
    const answer = fetch(sidecar.url).then((response) => response.bytes())
    const client = await dial(sidecar.ports['PORT2']!)
    const sender = await udpClient(sidecar.ports['PORT3']!)
    for (let i = 0; i < 10; i++) {
      await client.write(Buffer.alloc(10_000))
      sender.send(Buffer.alloc(1000))
      await sender.next()
    }
    await client.inbox.take(100_000)
    await chat.write('x'.repeat(50_000))
    await chat.inbox.take(50_000)
    await until(async () => (await data()).chat.every((bytes) => bytes > 50_000 && bytes < 51_000))
    await until(async () => (await data()).web.received > 100_000)
    await until(async () => (await data()).tcp[1]!.sent === 100_000)
    const meanwhile = await data()
    assert.deepEqual(meanwhile.tcp, both(100_000))
    assert.deepEqual(meanwhile.udp, both(10_000))
    assert.ok(meanwhile.web.received < 400_000)
    // Nothing is counted twice, now or at the end.
    await client.write('and a little more')
    await client.inbox.take(17)
    await wait(1200)
    assert.deepEqual((await data()).tcp, both(100_017))
    assert.ok((await data()).chat.every((bytes) => bytes > 50_000 && bytes < 51_000))
    chat.end()
    assert.equal(await chat.closed, 'fin')
    chat.close()
    await client.write('!')
    await client.inbox.take(1)
    client.end()
    assert.equal(await client.closed, 'fin')
    client.close()
    assert.equal((await answer).length, 400_000)
    await sender[Symbol.asyncDispose]()
    await sidecar.logged(/"protocol":"UDP"/)
    await until(async () => (await data()).web.received > 400_000)
    const end = await data()
    assert.ok(end.chat.every((bytes) => bytes > 50_000 && bytes < 51_000))
    assert.deepEqual(end.tcp, both(100_018))
    assert.deepEqual(end.udp, both(10_000))
    assert.ok(end.web.received < 401_000, `${end.web.received}`)
    web.close()
  })
}
