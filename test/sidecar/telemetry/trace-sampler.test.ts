import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawTraceId } from '../../../sidecar/telemetry/trace-context.ts'
import { ratioSampler, samplerOf } from '../../../sidecar/telemetry/trace-sampler.ts'

const kept = { sampled: true }
const dropped = { sampled: false }
const id = drawTraceId()

/** What a sampler of that name and ratio does with a new trace, and with one that is kept or not so far. */
function decides(name: string | undefined, ratio?: string) {
  const said: string[] = []
  const env = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }
  const sampler = samplerOf(env, (text) => said.push(text))
  const decisions = [undefined, kept, dropped].map((parent) => (sampler(id, parent) ? 'keep' : 'drop'))
  return { decisions: decisions.join(' '), said }
}

test('the sampler is the one that is asked for, and by default goes by the parent', () => {
  const all: readonly (readonly [string | undefined, string | undefined, string])[] = [
    [undefined, undefined, 'keep keep drop'],
    ['', undefined, 'keep keep drop'],
    ['always_on', undefined, 'keep keep keep'],
    ['always_off', undefined, 'drop drop drop'],
    ['parentbased_always_on', undefined, 'keep keep drop'],
    ['parentbased_always_off', undefined, 'drop keep drop'],
    ['traceidratio', '1', 'keep keep keep'],
    ['traceidratio', '0', 'drop drop drop'],
    ['parentbased_traceidratio', '1.0', 'keep keep drop'],
    ['parentbased_traceidratio', '0', 'drop keep drop'],
  ]
  for (const [name, ratio, decisions] of all) {
    assert.deepEqual(decides(name, ratio), { decisions, said: [] }, `${name} ${ratio}`)
  }
})

test('what cannot be obeyed is said, and nothing is lost for it', () => {
  const unknown = decides('jaeger_remote')
  assert.equal(unknown.decisions, 'keep keep drop')
  assert.match(unknown.said[0]!, /^unknown sampler "jaeger_remote"/)
  for (const ratio of ['', '2', '-1', 'half', '1e9']) {
    const { decisions, said } = decides('traceidratio', ratio)
    assert.equal(decisions, 'keep keep keep')
    assert.match(said[0]!, new RegExp(`^OTEL_TRACES_SAMPLER_ARG is "${ratio}"`))
  }
})

test('a ratio keeps that part of traces, always the same ones, and a smaller one part of these', () => {
  const ids = Array.from({ length: 20_000 }, drawTraceId)
  const [some, more] = [ratioSampler(0.05), ratioSampler(0.3)].map(
    (sampler) => new Set(ids.filter((id) => sampler(id, undefined))),
  )
  assert.ok(Math.abs(some!.size / ids.length - 0.05) < 0.008, `${some!.size}`)
  assert.ok(Math.abs(more!.size / ids.length - 0.3) < 0.016, `${more!.size}`)
  assert.ok(some!.isSubsetOf(more!))
  const again = ratioSampler(0.05)
  assert.ok(ids.every((id) => again(id, kept) === some!.has(id)))
})
