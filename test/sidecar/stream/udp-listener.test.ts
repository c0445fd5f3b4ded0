import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tally } from '../../../feedback/tally.ts'
import { bindUdp } from '../../../sidecar/net/bind-udp.ts'
import { sessionDefaults } from '../../../sidecar/stream/settings.ts'
import { UdpListener } from '../../../sidecar/stream/udp-listener.ts'

test('a datagram from port 0 is dropped: nobody could answer it', async (t) => {
  const bind = { key: '127.0.0.1:0', address: { kind: 'tcp', host: '127.0.0.1', port: 0 } } as const
  const socket = await bindUdp(bind, false)
  t.after(() => void socket.close())
  let lost = 0
  const unexpected = () => assert.fail('it begins nothing')
  const listener = new UdpListener(bind, socket, {
    counts: new Tally().own,
    graceMs: 0,
    admit: unexpected,
    begun: unexpected,
    gone: unexpected,
    expect: unexpected,
    complain: unexpected,
    note: unexpected,
    lost: () => {
      lost += 1
    },
  })
  listener.server = {
    address: bind.key,
    proxied: false,
    door: undefined,
    settings: sessionDefaults,
    content: { kind: 'return', text: () => 'x' },
    accessLogs: [],
    zone: undefined,
  }
  // As the system hands it over. To send one takes rights that tests may not have.
  socket.emit('message', Buffer.from('x'), { address: '127.0.0.1', family: 'IPv4', port: 0, size: 1 })
  assert.equal(lost, 1)
})
