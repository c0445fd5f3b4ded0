import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Where tests leave pictures of what they saw; not part of the repository. */
export const pictures = new URL('../../test-output/', import.meta.url).pathname

/** The browser of this machine. */
function executable(): string {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
      if (existsSync(join(folder, name))) return join(folder, name)
    }
  }
  throw new Error('chromium is not installed: on Debian, "apt-get install chromium"')
}

/** A real browser without a window. */
export async function browser(): Promise<Browser> {
  // Its sandbox does not work for root.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return await chromium.launch({ executablePath: executable(), args: [...args, '--disable-dev-shm-usage'] })
}

/** A page, and what went wrong in it. */
export interface Watched {
  readonly page: Page
  /** Errors and warnings of its console, exceptions, and requests to anybody but its own server. */
  readonly faults: string[]
}

/**
 * Opens the page of a server.
 * @param origin `http://127.0.0.1:9900`
 */
export async function visit(
  from: Browser,
  origin: string,
  options: BrowserContextOptions & { path?: string } = {},
): Promise<Watched> {
  const { path = '/', ...rest } = options
  const context = await from.newContext({ viewport: { width: 1440, height: 900 }, ...rest })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`))
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) faults.push(`request to ${url}`)
  })
  await page.goto(origin + path)
  return { page, faults }
}

/** Nothing went wrong in it. */
export function clean({ faults }: Watched): void {
  assert.deepEqual(faults, [])
}

/** Leaves a picture among the test's output. */
export async function picture(page: Page, name: string, fullPage = true): Promise<void> {
  mkdirSync(pictures, { recursive: true })
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage })
}
