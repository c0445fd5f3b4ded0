import { lstat, rm } from 'node:fs/promises'
import { connect } from 'node:net'

/**
 * Removes the file of a Unix socket that nobody listens on any more, as a killed process leaves it behind.
 * @throws Error when somebody does listen on it, or when the file is no socket
 */
export async function clearSocket(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined)
  if (stats === undefined) return
  if (!stats.isSocket()) throw new Error(`bind() to unix:${path} failed: the file is not a socket`)
  if (await answers(path)) throw new Error(`bind() to unix:${path} failed: another process listens on it`)
  await rm(path, { force: true })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
