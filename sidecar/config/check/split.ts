import { stableTrack } from '../../../feedback/track.ts'
import { fail, type Place } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { UpstreamBlock } from '../upstream-model.ts'

/**
 * Rules of a group whose requests are split over tracks.
 * @throws ConfigError
 */
export function checkSplit(name: string, upstream: UpstreamBlock, reading: Reading): void {
  const { split, servers = [] } = upstream
  if (split === undefined) return
  const at = (key: string): Place => reading.at(split, key) ?? { file: '', line: 0, syntax: 'yaml' }
  const { by, percent = {}, key } = split
  const named = Object.keys(percent)
  if (named.length === 0 && key !== undefined) fail(at('key'), '"key" parameter requires percentages')
  if (named.length === 0 && by === undefined) fail(at(''), 'invalid number of arguments in "split" directive')
  const tracks = new Set<string>()
  for (const server of servers) {
    const { track = stableTrack, backup } = server
    if (!backup) tracks.add(track)
    else if (track !== stableTrack) {
      // It would get what `stable` loses.
      fail(reading.at(server) ?? at(''), '"track" parameter of a backup server is incompatible with "split"')
    }
  }
  if ([...tracks].every((track) => track === stableTrack)) {
    fail(at(''), '"split" directive requires servers with the "track" parameter')
  }
  for (const track of named) {
    if (!tracks.has(track)) fail(at('percent'), `no servers of track "${track}" in upstream "${name}"`)
  }
  const hundredths = Object.values(percent).reduce((sum, one) => sum + Math.round(100 * one), 0)
  if (hundredths < 10_000 && Object.hasOwn(percent, stableTrack)) {
    // It would get the rest too, and so more than is written.
    const total = `percent total is ${hundredths / 100}%`
    fail(at('percent'), `${total}, it must be 100% if "${stableTrack}" has a percentage`)
  }
  if (hundredths < 10_000 && !tracks.has(stableTrack)) {
    const rest = (10_000 - hundredths) / 100
    fail(at('percent'), `no servers of track "${stableTrack}" in upstream "${name}" for the other ${rest}%`)
  }
}
