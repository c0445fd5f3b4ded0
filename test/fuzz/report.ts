import type { Outcome } from './arena.ts'
import { variantOf } from './plan.ts'

const most = 1500

/** Bytes as text, a line of them a line. */
function shown(bytes: Buffer, indent: string): string {
  const text = JSON.stringify(bytes.toString('latin1')).slice(1, -1)
  const short = text.length > most ? `${text.slice(0, most)}… (${bytes.length} bytes)` : text
  return short.replace(/\\n(?!$)/g, `\\n\n${indent}`)
}

/** A case for people: what was sent, what each peer got and said, what came back, and what is wrong with it. */
export function told({ plan, got, seen, faults }: Outcome): string {
  const { seed, messages, cuts, inTurn, pauseMs, slowMs } = plan
  const ending = typeof plan.ending === 'string' ? plan.ending : `leaves after ${plan.ending.leave} bytes`
  const lines = [`seed ${seed} (${variantOf(plan).name})`, ...faults.map((fault) => `  FAULT ${fault}`)]
  const how = `cut at ${cuts.length > 12 ? `${cuts.length} places` : `[${cuts}]`}, pauses ${pauseMs} ms, ${ending}`
  lines.push(`  client: ${how}${inTurn ? ', in turn' : ''}${slowMs > 0 ? `, reads after ${slowMs} ms` : ''}`)
  for (const { bytes, sound } of messages) {
    lines.push(`    ${sound ? 'valid' : 'other'}: ${shown(bytes, '           ')}`)
  }
  for (const [i, attempts] of seen.entries()) {
    for (const { attempt, request, said, ended, reused, script } of attempts) {
      const state = `${request.state}, body ${request.body.length} bytes${reused ? ', kept connection' : ''}`
      lines.push(`  peer: request ${i} attempt ${attempt}: ${request.method} ${request.target} (${state})`)
      lines.push(`    said at ${script.when}, ${ended}: ${shown(said, '          ')}`)
    }
  }
  lines.push(
    `  client got (${got.ended}${got.hung ? ', waited in vain' : ''}): ${shown(got.bytes, '          ')}`,
  )
  return lines.join('\n')
}
