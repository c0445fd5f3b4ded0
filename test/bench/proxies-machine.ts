import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'

/** How each says which version it is: a command, and what of its output is the version. */
const versions: readonly (readonly [name: string, command: readonly [string, string], form: RegExp])[] = [
  ['nginx', ['nginx', '-v'], /nginx\/([\d.]+)/],
  ['HAProxy', ['haproxy', '-v'], /version ([\d.]+)/],
  ['Caddy', ['caddy', 'version'], /v?([\d.]+)/],
]

/** What the figures of a run depend on, in one sentence without its full stop. */
export function machine(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  const found = versions.map(([name, [program, word], form]) => {
    const { stdout, stderr } = spawnSync(program, [word], { encoding: 'utf8' })
    return `${name} ${form.exec(`${stdout}${stderr}`)?.[1] ?? 'of an unknown version'}`
  })
  return [
    `${cpus().length} cores of a shared machine (${model}), Node ${process.versions.node}`,
    ...found,
    `\`@fastify/http-proxy\` ${packageVersion('@fastify/http-proxy')}`,
  ].join(', ')
}

function packageVersion(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  // The shape is npm's.
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
