/** Waits until something is so. @throws when that takes longer than `ms` */
export async function until(so: () => boolean | Promise<boolean>, ms = 10_000): Promise<void> {
  const end = performance.now() + ms
  while (!(await so())) {
    if (performance.now() > end) throw new Error(`not so within ${ms} ms: ${so}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
