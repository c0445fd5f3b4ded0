/** How the load is; see `startDemoLoad`. */
export interface DemoLoad {
  /** Requests that were sent, and those of them that got an answer of 5xx or none. */
  readonly sent: number
  readonly failed: number
  /** Sends no more. */
  stop(): void
}

/** What somebody might ask a small shop for; one in ten writes. */
const requests = [
  ['GET', ''],
  ['GET', 'items'],
  ['GET', 'items/7'],
  ['GET', 'items/42'],
  ['GET', 'items/1001'],
  ['GET', 'search'],
  ['GET', 'basket'],
  ['PUT', 'basket/42'],
  ['GET', 'help'],
  ['POST', 'orders'],
] as const

/** Most requests in progress: what stands in front of slow peers gets no more than that from here. */
const mostInProgress = 20

/**
 * Sends a few requests a second, so that there is something to see: at random moments, as independent clients do.
 * @param base address that all paths are below, with a slash at its end
 * @param perSecond how many, on average
 * @param random uniform in [0, 1)
 */
export function startDemoLoad(base: string, perSecond: number, random: () => number = Math.random): DemoLoad {
  const state = { sent: 0, failed: 0 }
  let inProgress = 0
  let timer: NodeJS.Timeout | undefined
  const control = new AbortController()
  const send = async () => {
    if (inProgress >= mostInProgress) return
    const [method, path] = requests[Math.floor(random() * requests.length)]!
    inProgress += 1
    state.sent += 1
    try {
      const response = await fetch(base + path, { method, signal: control.signal })
      await response.arrayBuffer()
      if (response.status >= 500) state.failed += 1
    } catch {
      // The program may be ending, or may not take any: whoever watches sees that.
      state.failed += 1
    } finally {
      inProgress -= 1
    }
  }
  const next = () => {
    // Exponential gaps make a Poisson process.
    timer = setTimeout(
      () => {
        void send()
        next()
      },
      (-Math.log(1 - random()) * 1000) / perSecond,
    ).unref()
  }
  next()
  return {
    get sent() {
      return state.sent
    },
    get failed() {
      return state.failed
    },
    stop() {
      clearTimeout(timer)
      control.abort()
    },
  }
}
