import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments, UsageError } from '../../sidecar/cli.ts'

/** What was asked for, without what was not. */
function asked(...words: string[]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parseArguments(words)).filter(([, value]) => value !== undefined && value !== false),
  )
}

test('nothing asked for starts the program on the default configuration', () => {
  assert.deepEqual(asked(), {})
})

test('every letter is read', () => {
  assert.deepEqual(asked('-c', 'a.conf', '-p', '/p', '-e', 'e.log', '-g', 'pid x;', '-q'), {
    config: 'a.conf',
    prefix: '/p',
    errorLog: 'e.log',
    globals: 'pid x;',
    quiet: true,
  })
  assert.deepEqual(asked('-h'), { help: true })
  assert.deepEqual(asked('-?'), { help: true })
  assert.deepEqual(asked('--help'), { help: true })
  assert.deepEqual(asked('--version'), { version: 'short' })
  assert.deepEqual(asked('-v'), { version: 'short' })
  assert.deepEqual(asked('-V'), { version: 'long' })
  assert.deepEqual(asked('-s', 'reopen'), { signal: 'reopen' })
})

test('-T tests and dumps', () => {
  assert.deepEqual(asked('-T'), { test: true, dump: true })
})

test('letters run together, and a value may touch its letter', () => {
  assert.deepEqual(asked('-tc', 'a.conf'), { test: true, config: 'a.conf' })
  assert.deepEqual(asked('-tqca.conf'), { test: true, quiet: true, config: 'a.conf' })
  assert.deepEqual(asked('-sreload', '-ptc'), { signal: 'reload', prefix: 'tc' })
})

test('the last of two values wins', () => {
  assert.deepEqual(asked('-c', 'a', '-c', 'b'), { config: 'b' })
})

const refusals: [string[], string][] = [
  [['x'], 'invalid option: "x"'],
  [['-t', 'own.conf'], 'invalid option: "own.conf", a configuration is named by "-c own.conf"'],
  [['-x'], 'invalid option: "x"'],
  [['-tx'], 'invalid option: "x"'],
  [['--helpless'], 'invalid option: "--helpless"'],
  [['-c'], 'option "-c" requires file name'],
  [['-tc'], 'option "-c" requires file name'],
  [['-c', ''], 'option "-c" requires file name'],
  [['-e'], 'option "-e" requires file name'],
  [['-p'], 'option "-p" requires directory name'],
  [['-g'], 'option "-g" requires parameter'],
  [['-s'], 'option "-s" requires parameter'],
  [['-s', 'restart'], 'invalid option: "-s restart"'],
  [['-s', 'constructor'], 'invalid option: "-s constructor"'],
]
for (const [words, message] of refusals) {
  test(`${JSON.stringify(words)} is refused: ${message}`, () => {
    assert.throws(() => parseArguments(words), new UsageError(message))
  })
}
