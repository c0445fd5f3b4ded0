import { answersIn, type Got } from './client.ts'
import { answerOf, ownOfAnswer, ownOfRequest, passed, shown } from './passed.ts'
import type { Seen } from './peer.ts'
import { meaning, type Plan, scriptOf, sure, variantOf } from './plan.ts'
import type { StrictAnswer, StrictRequest } from './strict.ts'
import { type Field, values, words } from './strict-parts.ts'

/** Methods that must not be sent twice. */
const oneShot = new Set(['POST', 'PATCH', 'LOCK'])

/** What contradicts what was agreed on: for each fault one line. */
export function judge(plan: Plan, got: Got, seen: readonly (readonly Seen[])[]): string[] {
  return new Judgement(plan, got, seen).faults
}

class Judgement {
  readonly faults: string[] = []
  readonly #plan: Plan
  readonly #got: Got
  readonly #seen: readonly (readonly Seen[])[]
  readonly #requests: readonly StrictRequest[]

  constructor(plan: Plan, got: Got, seen: readonly (readonly Seen[])[]) {
    this.#plan = plan
    this.#got = got
    this.#seen = seen
    const { requests } = meaning(plan)
    this.#requests = requests
    for (const [i, request] of requests.entries()) this.#peers(i, request)
    this.#client()
  }

  #fault(text: string): void {
    this.faults.push(text)
  }

  /** What peers got is what the client has sent. */
  #peers(i: number, sent: StrictRequest): void {
    const attempts = this.#seen[i] ?? []
    for (const [k, { request, spoken, script }] of attempts.entries()) {
      const which = `request ${i}, attempt ${k}`
      const had = passed(request.fields, ownOfRequest, false)
      const wanted = passed(sent.fields, ownOfRequest, true)
      if (had !== wanted) this.#fault(`${which}: a peer got the fields ${shown(had)} for ${shown(wanted)}`)
      if (request.state === 'whole' && sent.state !== 'whole') {
        this.#fault(
          `${which}: a peer got as whole what the client has not sent in full (${sent.state} ${sent.why})`,
        )
      }
      const begins = sent.body.subarray(0, request.body.length).equals(request.body)
      if (!begins) this.#fault(`${which}: a peer got a body that nobody has sent: ${shown(request.body)}`)
      else if (request.state === 'whole' && request.body.length !== sent.body.length) {
        this.#fault(
          `${which}: a peer got ${request.body.length} of ${sent.body.length} bytes as the whole body`,
        )
      }
      if (spoken.length > 0 && !script.tunnel) this.#fault(`${which}: a tunnel that nobody agreed to`)
      if (script.tunnel) {
        const rest = Buffer.concat(this.#plan.messages.slice(1).map(({ bytes }) => bytes))
        if (!rest.subarray(0, spoken.length).equals(spoken))
          this.#fault(`${which}: a tunnel said ${shown(spoken)}`)
      }
      if (k > 0) this.#repeated(which, sent, attempts[k - 1]!)
    }
  }

  /** A request may go to a second peer where the first one has failed it. */
  #repeated(which: string, sent: StrictRequest, before: Seen): void {
    if (oneShot.has(sent.method)) this.#fault(`${which}: ${sent.method} was sent twice`)
    const { status, state } = answerOf(before)
    // A reset may have overtaken what was said before it.
    const stale = before.reused && (before.said.length === 0 || before.ended === 'reset')
    if (stale) return
    if (variantOf(this.#plan).attempts === 1) this.#fault(`${which}: sent twice, with retries off`)
    if (status !== 0 && status !== 503 && state !== 'broken' && before.ended !== 'reset') {
      this.#fault(`${which}: sent again after an answer with ${status}`)
    }
  }

  /** What the client got is what peers have said, in order, or an answer of the program's own. */
  #client(): void {
    const { bytes, ended, hung } = this.#got
    const requests = this.#requests
    const answers = answersIn(bytes, requests, ended)
    let end = 0
    for (const [i, answer] of answers.entries()) {
      this.#answer(i, answer)
      end = answer.end
    }
    const last = answers.at(-1)
    if (last?.status === 101) this.#switched(answers.length - 1, end)
    else if (last?.state === 'whole' && end < bytes.length) {
      this.#fault(`more came after the last answer: ${shown(bytes.subarray(end))}`)
    }
    if (hung) this.#fault(`the client waited in vain after ${answers.length} of ${requests.length} answers`)
    if (this.#plan.ending !== 'wait' || last?.last || (last && last.state !== 'whole')) return
    const owed = this.#owed()
    if (answers.length < owed) this.#fault(`${answers.length} answers, where ${owed} had to come (${ended})`)
  }

  /** How many answers had to come. */
  #owed(): number {
    // A client that the machine lets wait may meet a short time-out before it has said anything.
    if (!variantOf(this.#plan).patient) return 0
    let count = 0
    const certain = sure(this.#plan)
    while (count < certain && this.#sound(count)) count += 1
    if (count === certain) return count
    // What is broken off comes as far as it got, unless the reset overtakes it.
    if (this.#got.ended !== 'reset') return count + 1
    // A body that ends with its connection can be cut off by a reset alone, which may overtake what went before it, too.
    return this.#requests[count]?.version === '1.0' ? 0 : count
  }

  /** Whether nothing about the scripts of a request spoils what it, or what comes after it, has to get. */
  #sound(i: number): boolean {
    return Array.from({ length: variantOf(this.#plan).attempts }, (_, k) => scriptOf(this.#plan, i, k)).every(
      ({ sound }) => sound,
    )
  }

  #answer(i: number, answer: StrictAnswer): void {
    const sent = this.#requests[i]
    const which = `answer ${i}`
    if (answer.state === 'broken') {
      this.#fault(
        `${which}: ${answer.why}: ${shown(this.#got.bytes.subarray(Math.max(0, answer.end - 100)))}`,
      )
      return
    }
    if (sent?.version === '1.0' && (answer.framing === 'chunked' || answer.interim.length > 0)) {
      this.#fault(`${which}: a client of HTTP/1.0 got what it cannot read`)
    }
    const left = this.#plan.ending !== 'wait'
    // It broke off before its head was there.
    if (answer.status === 0) {
      if (!left) this.#fault(`${which}: only the beginning of a head came`)
      return
    }
    for (const { status, fields } of answer.interim) this.#interim(i, status, fields)
    const attempts = this.#seen[i] ?? []
    const said = attempts.map((one) => ({ one, answer: sent ? answerOf(one) : undefined }))
    const match = said.find(({ answer: theirs }) => theirs !== undefined && this.#same(answer, theirs))
    if (!match) {
      this.#own(
        i,
        answer,
        said.map(({ one }) => one),
      )
      return
    }
    // Only what is looked for was found.
    const theirs = match.answer!
    if (answer.state === 'whole' && answer.framing !== 'none' && theirs.state !== 'whole') {
      this.#fault(`${which}: looks whole, and the peer's was ${theirs.state} ${theirs.why}`)
    }
    // A request that turns out to be none while it is answered takes its connection with it.
    const spared = left || sent?.state !== 'whole' || !variantOf(this.#plan).patient
    if (answer.state === 'cut' && theirs.state === 'whole' && match.one.ended !== 'reset' && !spared) {
      this.#fault(`${which}: is cut, and the peer's was whole`)
    }
    if (answer.state === 'cut' && this.#got.ended === 'open' && !left)
      this.#fault(`${which}: is cut, and its connection goes on`)
  }

  /** Whether an answer is, as far as it came, what a peer has said. */
  #same(answer: StrictAnswer, theirs: StrictAnswer): boolean {
    if (answer.status !== theirs.status) return false
    if (passed(answer.fields, ownOfAnswer, false) !== passed(theirs.fields, ownOfAnswer, false)) return false
    if (!theirs.body.subarray(0, answer.body.length).equals(answer.body)) return false
    return answer.state === 'cut' || theirs.state !== 'whole' || answer.body.length === theirs.body.length
  }

  #interim(i: number, status: number, fields: readonly Field[]): void {
    const sent = this.#requests[i]
    if (status === 100) {
      const expects = sent && words(sent.fields, 'expect').includes('100-continue')
      if (!expects) this.#fault(`answer ${i}: a 100 that nobody expects`)
      return
    }
    const known = (this.#seen[i] ?? []).some(
      (one) =>
        sent &&
        answerOf(one).interim.some(
          (theirs) =>
            theirs.status === status &&
            passed(theirs.fields, ownOfAnswer, false) === passed(fields, ownOfAnswer, false),
        ),
    )
    if (!known) this.#fault(`answer ${i}: an interim ${status} that no peer has sent`)
  }

  /** An answer of the program's own: to what could not be read, or where no peer had one. */
  #own(i: number, answer: StrictAnswer, attempts: readonly Seen[]): void {
    const which = `answer ${i}`
    const { status, fields, state } = answer
    const tag = values(fields, 'x-tag')[0]
    const whose = tag === undefined ? '' : `, tagged ${tag}`
    if (values(fields, 'server')[0] !== 'evenkeel' || status < 400 || tag !== undefined) {
      // What is asked of the server as a whole is answered by it.
      if (this.#requests[i]?.target === '*' && status === 200) return
      const peers = attempts.map(({ said }) => shown(said)).join(' and ')
      this.#fault(
        `${which}: ${status}${whose} is what no peer has said: ${shown(this.#got.bytes)}; peers: ${peers}`,
      )
      return
    }
    if (state !== 'whole' && this.#plan.ending === 'wait')
      this.#fault(`${which}: an answer of our own is cut`)
    if (status >= 500 && ![500, 501, 502, 503, 504, 505].includes(status)) this.#fault(`${which}: ${status}`)
    if (status === 500) this.#fault(`${which}: 500: something should not have happened`)
    if (this.#plan.ending !== 'wait') return
    // Short time-outs may be met by whatever lets the machine wait.
    const slow = !variantOf(this.#plan).patient && (status === 408 || status === 504)
    if (i < sure(this.#plan) && this.#sound(i) && !slow && !this.#staleOnly(i, answer)) {
      this.#fault(
        `${which}: ${status} to a valid request whose peer ${attempts.length > 0 ? 'answered' : 'never saw it'}`,
      )
    }
    const sent = this.#requests[i]
    if (status >= 502 && sent && sent.state !== 'whole' && attempts.length === 0) {
      this.#fault(`${which}: ${status} to what no peer was asked`)
    }
  }

  /** A peer may close a kept connection at the moment when it is reused: a request that must not go twice fails then. */
  #staleOnly(i: number, answer: StrictAnswer): boolean {
    const sent = this.#requests[i]!
    const explained = values(answer.fields, 'x-explain')[0] ?? ''
    const held = oneShot.has(sent.method) || sent.body.length > 0
    return held && answer.status === 502 && /stale/.test(explained)
  }

  /** After the switch each side gets what the other one says. */
  #switched(i: number, end: number): void {
    const one = this.#seen[i]?.find(({ script }) => script.tunnel)
    const sent = this.#requests[i]
    if (!one || !sent) {
      this.#fault('a switch of protocols that no peer has agreed to')
      return
    }
    const said = one.said.subarray(answerOf(one).end)
    const heard = this.#got.bytes.subarray(end)
    if (!said.subarray(0, heard.length).equals(heard))
      this.#fault(`a tunnel: the client heard ${shown(heard)}`)
    if (this.#plan.ending !== 'fin') return
    if (heard.length !== said.length)
      this.#fault(`a tunnel: the client heard ${heard.length} of ${said.length} bytes`)
    const spoken = this.#plan.messages.slice(1).reduce((sum, { bytes }) => sum + bytes.length, 0)
    if (one.spoken.length !== spoken) {
      this.#fault(`a tunnel: the peer heard ${one.spoken.length} of ${spoken} bytes`)
    }
  }
}
