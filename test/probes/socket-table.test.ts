import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { endianness, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { SocketTable } from '../../probes/socket-table.ts'

const folder = mkdtempSync(join(tmpdir(), 'evenkeel-table-'))
after(() => rmSync(folder, { recursive: true }))

const heading4 =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
const heading6 =
  '  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'

/** A row as the kernel writes it: `address` in bytes from left to right. */
function row(address: readonly number[], port: number, queue: number, state = '0A'): string {
  const words: string[] = []
  for (let i = 0; i < address.length; i += 4) {
    const word = address.slice(i, i + 4)
    words.push(Buffer.from(endianness() === 'LE' ? word.reverse() : word).toString('hex'))
  }
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')
  const local = `${words.join('')}:${hex(port, 4)}`.toUpperCase()
  const remote = `${'0'.repeat(address.length * 2)}:0000`
  const tail = '00:00000000 00000000     0        0 751005 1 0000000082e71106 100 0 0 10 0'
  return `   0: ${local} ${remote} ${state} 00000000:${hex(queue, 8).toUpperCase()} ${tail}`
}

let serial = 0

/** A table of these rows; one that is not given is not there. */
function table(v4: readonly string[], v6?: readonly string[]): SocketTable {
  serial += 1
  const paths = { v4: join(folder, `${serial}-tcp`), v6: join(folder, `${serial}-tcp6`) }
  const text = (heading: string, rows: readonly string[]) =>
    [heading, ...rows].map((line) => `${line.padEnd(149)}\n`).join('')
  writeFileSync(paths.v4, text(heading4, v4))
  if (v6) writeFileSync(paths.v6, text(heading6, v6))
  return new SocketTable(paths)
}

const local = [127, 0, 0, 1]
const other = [127, 0, 0, 2]
const any = [0, 0, 0, 0]
const any6: number[] = Array(16).fill(0)
const local6 = [...any6.slice(0, 15), 1]
const mapped = [...any6.slice(0, 10), 255, 255, 127, 0, 0, 1]

test('the queue of the listener on exactly this address and port is found', async () => {
  const sockets = table([row(other, 8080, 1), row(local, 8081, 2), row(local, 8080, 0x1f), row(any, 8082, 4)])
  assert.equal(await sockets.queue('127.0.0.1', 8080), 31)
  assert.equal(await sockets.queue('127.0.0.2', 8080), 1)
  assert.equal(await sockets.queue('127.0.0.1', 8081), 2)
  assert.equal(await sockets.queue('127.0.0.3', 8080), undefined)
  assert.equal(await sockets.queue('127.0.0.1', 9999), undefined)
})

test('a listener on all addresses is found where none is on the one', async () => {
  const sockets = table([row(any, 8080, 7), row(local, 8080, 3)])
  assert.equal(await sockets.queue('127.0.0.1', 8080), 3)
  assert.equal(await sockets.queue('127.0.0.2', 8080), 7)
  assert.equal(await sockets.queue('::1', 8080), undefined)
})

test("IPv4 is looked for among IPv6's listeners too, after IPv4's own", async () => {
  const sockets = table(
    [row(any, 1, 10)],
    [row(any6, 1, 11), row(any6, 2, 12), row(any6, 3, 13), row(mapped, 3, 14), row(local6, 4, 15)],
  )
  assert.equal(await sockets.queue('127.0.0.1', 1), 10)
  assert.equal(await sockets.queue('127.0.0.1', 2), 12)
  assert.equal(await sockets.queue('127.0.0.1', 3), 14)
  assert.equal(await sockets.queue('127.0.0.2', 3), 13)
  assert.equal(await sockets.queue('127.0.0.1', 4), undefined)
  assert.equal(await sockets.queue('::1', 4), 15)
  assert.equal(await sockets.queue('::1', 3), 13)
  assert.equal(await sockets.queue('::ffff:127.0.0.1', 3), 14)
})

test('"all addresses" as a peer is the loopback one', async () => {
  const sockets = table([row(local, 1, 5)], [row(local6, 1, 6)])
  assert.equal(await sockets.queue('0.0.0.0', 1), 5)
  assert.equal(await sockets.queue('::', 1), 6)
})

test('of several listeners that share an address the fullest counts', async () => {
  const sockets = table([row(local, 1, 2), row(local, 1, 9), row(local, 1, 4)])
  assert.equal(await sockets.queue('127.0.0.1', 1), 9)
})

test('sockets that do not listen have no queue of this kind', async () => {
  const sockets = table([row(local, 1, 2), row(local, 2, 9, '01'), row(local, 3, 9, '06')])
  assert.equal(await sockets.queue('127.0.0.1', 2), undefined)
  assert.equal(await sockets.queue('127.0.0.1', 3), undefined)
})

test('a table that is larger than a page is read whole', async () => {
  const rows = Array.from({ length: 500 }, (_, i) => row(local, 1000 + i, i))
  const sockets = table(rows)
  assert.equal(await sockets.queue('127.0.0.1', 1499), 499)
  assert.equal(await sockets.queue('127.0.0.1', 1027), 27)
})

test('behind the first other socket nothing is read while the listener is found before it', async () => {
  const sockets = table([row(local, 1, 2), row(local, 1, 9, '01'), row(local, 1, 50)])
  assert.equal(await sockets.queue('127.0.0.1', 1), 2)
})

test('a table in another order is noticed when a listener is missed, and read whole from then on', async () => {
  const sockets = table([row(local, 1, 2), row(local, 1, 9, '01'), row(local, 2, 3), row(local, 1, 50)])
  assert.equal(await sockets.queue('127.0.0.1', 2), 3)
  await new Promise((resolve) => setTimeout(resolve, 6))
  assert.equal(await sockets.queue('127.0.0.1', 1), 50)
})

test('those who miss a listener at the same time share one look at the whole table', async () => {
  const sockets = table([row(local, 9, 1, '01'), row(local, 1, 2), row(local, 2, 3)])
  const all = Array.from({ length: 20 }, (_, i) => sockets.queue('127.0.0.1', 1 + (i % 2)))
  assert.deepEqual(await Promise.all(all), Array(10).fill([2, 3]).flat())
})

test('a kernel without IPv6 has no table of it, one without IPv4 cannot be asked', async () => {
  const sockets = table([row(local, 1, 2)])
  await sockets.check()
  assert.equal(await sockets.queue('127.0.0.1', 2), undefined)
  assert.equal(await sockets.queue('::1', 2), undefined)
  const lost = new SocketTable({ v4: join(folder, 'lost'), v6: join(folder, 'lost6') })
  await assert.rejects(lost.check(), /ENOENT/)
  await assert.rejects(lost.queue('127.0.0.1', 1), /ENOENT/)
  await assert.rejects(sockets.queue('localhost', 1), /"localhost" is no IP address/)
})

test('lines that are no rows are passed over', async () => {
  const sockets = table(['', 'garbage', '   x: zz', row(local, 1, 2)])
  assert.equal(await sockets.queue('127.0.0.1', 1), 2)
})
