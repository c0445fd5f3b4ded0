// A small DNS server in a process of its own: answers over UDP and TCP on one port of 127.0.0.1 what it is told to on
// its standard input, a line of JSON each, and says on its standard output what came.
import { createSocket, type RemoteInfo } from 'node:dgram'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, decode, encode, type Packet, RECURSION_DESIRED, TRUNCATED_RESPONSE } from 'dns-packet'
import type { DnsQuery, DnsRule, Junk } from './dns-script.ts'

const host = process.argv[2] ?? '127.0.0.1'
const wanted = Number(process.argv[3] ?? 0)
const codes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 }
let rules = new Map<string, DnsRule>()

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function ruleOf(name: string, type: string): DnsRule {
  const lower = name.toLowerCase()
  const rule = rules.get(`${type} ${lower}`) ?? rules.get(`* ${lower}`)
  if (rule !== undefined) return rule
  // A name with records of another type only is there all the same.
  const known = [...rules.keys()].some((key) => key.endsWith(` ${lower}`))
  return { code: known ? 'NOERROR' : 'NXDOMAIN' }
}

function answerOf({ id, questions }: Packet, rule: DnsRule, cut: boolean): Buffer {
  const { code = 'NOERROR', answers = [], additionals = [], bare = false } = rule
  const soa: Answer = {
    type: 'SOA',
    name: '.',
    ttl: 60,
    data: { mname: 'ns', rname: 'root', serial: 1, refresh: 60, retry: 60, expire: 60, minimum: 60 },
  }
  return encode({
    type: 'response',
    ...(id !== undefined && { id }),
    flags: RECURSION_DESIRED | codes[code] | (cut ? TRUNCATED_RESPONSE : 0),
    ...(questions && { questions }),
    // Records of the script are among those that can be written.
    answers: cut ? [] : ([...answers] as Answer[]),
    authorities: answers.length === 0 && !bare ? [soa] : [],
    additionals: cut ? [] : ([...additionals] as Answer[]),
  })
}

function junkOf(kind: Junk, query: Packet, rule: DnsRule): Buffer {
  // As a forger would have it: with an address of its own.
  const forged: DnsRule = {
    ...rule,
    answers: rule.answers?.map((one) => ({ ...one, data: '127.6.6.6' }) as never) ?? [],
  }
  switch (kind) {
    case 'garbage':
      return Buffer.from([query.id! >> 8, query.id! & 255, 0x80, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0xc0, 0xff])
    case 'wrong id':
      return answerOf({ ...query, id: (query.id! + 1) % 65_536 }, forged, false)
    case 'wrong question':
      return answerOf({ ...query, questions: [{ type: 'A', name: 'other.example' }] }, forged, false)
    case 'query':
      return encode({ ...query, type: 'query' })
  }
}

async function serve(
  message: Buffer,
  over: 'udp' | 'tcp',
  port: number,
  send: (reply: Buffer) => void,
): Promise<void> {
  const query = decode(message)
  const [question] = query.questions ?? []
  if (question === undefined) return
  const { name, type } = question
  tell({ query: { name, type, over, port, id: query.id ?? 0 } satisfies DnsQuery })
  const rule = ruleOf(name, type)
  if (rule.after) await sleep(rule.after)
  for (const kind of rule.junk ?? []) send(junkOf(kind, query, rule))
  if (rule.how !== 'drop') send(answerOf(query, rule, rule.how === 'truncated' && over === 'udp'))
}

const tcp = createServer((socket) => {
  let read = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    read = Buffer.concat([read, chunk])
    while (read.length >= 2 && read.length >= 2 + read.readUInt16BE(0)) {
      const end = 2 + read.readUInt16BE(0)
      const message = read.subarray(2, end)
      read = read.subarray(end)
      void serve(message, 'tcp', socket.remotePort ?? 0, (reply) => {
        const size = Buffer.alloc(2)
        size.writeUInt16BE(reply.length)
        socket.write(Buffer.concat([size, reply]))
      })
    }
  })
})

/** One port for both: another one is tried where only one of them is free. */
function listen(tries: number): void {
  const udp = createSocket('udp4')
  udp.on('message', (message, { address, port }: RemoteInfo) => {
    void serve(message, 'udp', port, (reply) => udp.send(reply, port, address))
  })
  udp.bind(wanted, host, () => {
    const { port } = udp.address()
    const listening = () => tell({ port })
    tcp.once('error', (error) => {
      udp.close()
      if (tries === 0) throw error
      // Or it would tell of this port once another one is listened on.
      tcp.off('listening', listening)
      setTimeout(() => listen(tries - 1), 50)
    })
    tcp.listen(port, host, listening)
  })
}
listen(50)

createInterface({ input: process.stdin }).on('line', (line) => {
  // The test writes nothing else.
  const { rules: own, done } = JSON.parse(line) as { rules: Record<string, DnsRule>; done: number }
  rules = new Map(Object.entries(own))
  tell({ done })
})
process.stdin.on('end', () => process.exit(0))
