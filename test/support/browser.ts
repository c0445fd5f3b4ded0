import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'

/** Where tests leave pictures of what they saw; not part of the repository. */
export const pictures = new URL('../../test-output/', import.meta.url).pathname

/** How soon the live page has to show a change, milliseconds: it does within a second where the machine has time. */
export const soon = { timeout: 8000 }

/** A page, and what went wrong in it. */
export interface Watched {
  readonly page: Page
  /** Errors and warnings of its console, exceptions, and requests to anybody but its own server. */
  readonly faults: string[]
  /** The row of a peer in the table of its group. */
  row(name: string): Locator
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
  const row = (name: string) =>
    page.locator('tr.peer', { has: page.getByRole('button', { name, exact: true }) })
  return { page, faults, row }
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
