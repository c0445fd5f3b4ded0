import { type ChildProcess, spawn } from 'node:child_process'

/** Ends the process and removes its folder once this one has ended, by whatever: the pipe between them closes then. */
export function guard(pid: number, folder: string): ChildProcess {
  const text = 'read -r line; kill -9 "$0"; rm -rf "$1"'
  // In a group of its own, so that an interrupt from the keyboard leaves it to do its work.
  const child = spawn('sh', ['-c', text, String(pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.unref()
  child.stdin.on('error', () => {})
  // What `spawn` types as a stream is a socket, which can be left out of what keeps the process alive.
  const pipe = child.stdin as unknown as { unref?(): void }
  pipe.unref?.()
  return child
}
