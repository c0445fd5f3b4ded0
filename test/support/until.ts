/** Waits until something is so. @throws when that takes longer than `ms` */
export async function until(so: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const from = performance.now()
  for (;;) {
    const said = so()
    if (await said) return
    const waited = performance.now() - from
    if (waited > ms) throw new Error(`not so within ${ms} ms: ${so}`)
    // To ask a server for its state costs work: not more often than the answer is wanted to be exact.
    const pause = said instanceof Promise ? Math.min(50, Math.max(5, waited / 10)) : 5
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}
