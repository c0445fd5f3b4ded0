import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { launchChromium } from './chromium.ts'

test('a page is shown, with letters in it, and no other host is reached', async () => {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.end('<h1>Even keel</h1><img src="http://elsewhere.test/x.png">')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const browser = await launchChromium()
  try {
    const page = await browser.newPage()
    const failed: string[] = []
    page.on('requestfailed', (request) => failed.push(`${request.url()} ${request.failure()?.errorText}`))
    const { port } = server.address() as AddressInfo
    await page.goto(`http://127.0.0.1:${port}/`)
    assert.equal(await page.textContent('h1'), 'Even keel')
    assert.deepEqual(failed, ['http://elsewhere.test/x.png net::ERR_NAME_NOT_RESOLVED'])
    // Letters have different widths; the boxes that stand for missing ones have one.
    const width = async (text: string) => {
      await page.setContent(`<span>${text}</span>`)
      return (await page.locator('span').boundingBox())!.width
    }
    assert.ok((await width('WWWW')) > 2 * (await width('iiii')))
  } finally {
    await browser.close()
    server.close()
  }
})
