import type { Call } from '../../../feedback/call.ts'

/** What `sticky cookie` says of its cookie. */
export interface CookieRules {
  readonly name: string
  /** Seconds, or `max`: as long as there are clients; undefined: as long as the browser runs. */
  readonly expires: number | 'max' | undefined
  /** In the order in which they are written; one that comes out empty, or ends with `=`, is left out. */
  readonly attributes: readonly ((call: Call) => string)[]
}

const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** Ten years, and about the last moment that 32 bits of seconds can say, as nginx has them. */
const forever = '; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000'

/** The value of `Set-Cookie` that names a peer by its id. */
export function cookieFor(id: string, rules: CookieRules, call: Call, wallAt: number): string {
  let text = `${rules.name}=${id}`
  const { expires } = rules
  if (expires === 'max') text += forever
  else if (expires !== undefined) {
    text += `; expires=${cookieDate(wallAt + 1000 * expires)}; max-age=${expires}`
  }
  for (const read of rules.attributes) {
    const attribute = read(call)
    if (attribute !== '' && !attribute.endsWith('=')) text += `; ${attribute}`
  }
  return text
}

/** A date as nginx writes it into cookies: with two digits of the year as long as these are understood. */
function cookieDate(wallAt: number): string {
  const date = new Date(1000 * Math.floor(wallAt / 1000))
  const year = date.getUTCFullYear()
  const two = (value: number) => String(value).padStart(2, '0')
  const day = `${two(date.getUTCDate())}-${months[date.getUTCMonth()]}-${year > 2037 ? year : two(year % 100)}`
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`
  return `${days[date.getUTCDay()]}, ${day} ${time} GMT`
}
