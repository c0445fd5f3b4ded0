import { Cluster, type Redis } from 'ioredis'
import { refusalOf } from './redis-error.ts'
import { type Script, script } from './script.ts'

/** Nothing comes of it, since the key is never there. */
const tried = script('trial', "return redis.call('PEXPIRE', KEYS[1], 1)")

/** Asks for what every script needs: that this user may run one, and that the server takes writes. */
export async function trial(redis: Redis | Cluster, prefix: string): Promise<void> {
  await redis.eval(tried.text, 1, `${prefix}:{trial}`)
}

/** Runs a script by its name, and with its text where the server does not have it, or no longer. */
export async function runScript(
  redis: Redis | Cluster,
  { sha, text }: Script,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.callBuffer('evalsha', sha, keys.length, ...keys, ...args)
  } catch (error) {
    if (refusalOf(error)?.code !== 'NOSCRIPT') throw error
    return await redis.callBuffer('eval', text, keys.length, ...keys, ...args)
  }
}

/** The first release whose scripts may ask for the time and write thereafter. */
const oldest = 5

/** What a server says of itself. */
export interface Standing {
  /** Why it cannot be used whatever else it answers; undefined: it can. */
  readonly fault: string | undefined
  /** What its operator should know; undefined: nothing. */
  readonly advice: string | undefined
}

/**
 * Looks whether the server can be shared through, and how well.
 *
 * @param within how long what is good to know, but not needed, may take, milliseconds
 */
export async function standing(redis: Redis | Cluster, prefix: string, within: number): Promise<Standing> {
  try {
    await trial(redis, prefix)
  } catch (error) {
    if (redis instanceof Cluster || !/^unknown command/i.test(refusalOf(error)?.text ?? '')) throw error
    const mode = (await infoOf(redis, within))?.get('redis_mode')
    if (mode !== 'sentinel') throw error
    return { fault: 'it is a sentinel, and that was not said', advice: undefined }
  }
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis]
  const infos = await Promise.all(servers.map((server) => infoOf(server, within)))
  const said = infos.filter((info) => info !== undefined)
  return { fault: said.map(faultOf).find(Boolean), advice: said.map(adviceOf).find(Boolean) }
}

/** @returns undefined where the user may not ask, or the answer takes too long */
async function infoOf(server: Redis, within: number): Promise<ReadonlyMap<string, string> | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), within)
    timer.unref()
  })
  const text = await Promise.race([server.info().catch(() => undefined), late])
  clearTimeout(timer)
  return text === undefined ? undefined : fields(text)
}

function fields(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) found.set(line.slice(0, colon), line.slice(colon + 1))
  }
  return found
}

function faultOf(info: ReadonlyMap<string, string>): string | undefined {
  const version = info.get('redis_version')
  const major = Number.parseInt(version ?? '', 10)
  return major < oldest ? `its version is ${version}, and ${oldest}.0 is the least that will do` : undefined
}

function adviceOf(info: ReadonlyMap<string, string>): string | undefined {
  const policy = info.get('maxmemory_policy')
  // Without a limit nothing is ever evicted, whatever the policy. All our keys expire, so `volatile-…` means them too.
  if (policy === undefined || policy === 'noeviction' || !(Number(info.get('maxmemory')) > 0))
    return undefined
  return `may evict keys (maxmemory-policy ${policy}); what instances share is then lost now and then, use noeviction`
}
