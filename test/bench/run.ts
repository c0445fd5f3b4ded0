/**
 * Runs a bench by name: `node test/bench/run.ts pick`, and without one the comparison with other proxies. A bench is a
 * file beside this one that exports `run`, which is given the words that follow the name.
 */
const benches: Readonly<
  Record<string, () => Promise<{ run(words: readonly string[]): void | Promise<void> }>>
> = {
  proxies: () => import('./proxies.ts'),
  pick: () => import('./pick.ts'),
  forward: () => import('./forward.ts'),
  traces: () => import('./traces.ts'),
  memory: () => import('./memory.ts'),
  sessions: () => import('./sessions.ts'),
  fleet: () => import('./fleet.ts'),
  'fleet-benefit': () => import('./fleet-benefit.ts'),
  simulate: () => import('./simulate.ts'),
  tail: () => import('./tail.ts'),
}

const words = process.argv.slice(2)
const name = words[0] === undefined || words[0].startsWith('-') ? 'proxies' : words.shift()!
const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
if (bench) {
  const { run } = await bench()
  await run(words)
} else {
  console.error(`bench: one of ${Object.keys(benches).join(', ')}`)
  process.exitCode = 1
}
