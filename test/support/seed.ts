import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compiled, launcher } from './sidecar.ts'

/**
 * A configuration of `test/system/seeds`, as its author wrote it.
 * @param places what stands in a test for the addresses in it, tried in order
 */
export async function seed(name: string, places: Readonly<Record<string, string>> = {}): Promise<string> {
  const text = await readFile(new URL(`../system/seeds/${name}.conf`, import.meta.url), 'utf8')
  return Object.entries(places).reduce((rest, [from, to]) => rest.replaceAll(from, to), text)
}

/** What the program says of a configuration when it is only to test it (`-t`). */
export async function tested(text: string): Promise<{ readonly code: number | null; readonly said: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-'))
  const file = join(folder, 'evenkeel.conf')
  await writeFile(file, text)
  const child = spawn(launcher, ['-t', '-c', file], {
    env: { ...compiled, ...process.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      said += piece
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  await rm(folder, { recursive: true, force: true })
  return { code, said: said.replaceAll(folder, '') }
}
