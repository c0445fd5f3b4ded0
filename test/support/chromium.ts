import { type Browser, chromium } from 'playwright-core'
import { ensure, pathOf } from '../../scripts/ensure.ts'

/**
 * Starts Debian's Chromium without a window; it ends with this process. It knows no name but `localhost`: a page that
 * asks another host for something does not get it, on whatever machine the test runs.
 *
 * @param flags further ones of its command line
 */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser> {
  await ensure(['chromium'])
  return chromium.launch({
    executablePath: pathOf('chromium'),
    headless: true,
    // It refuses to run its sandbox as root, which is who runs tests in a container.
    chromiumSandbox: false,
    args: [
      // The shared memory of a container is 64 MiB, which is not enough for a page.
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
      ...flags,
    ],
  })
}
