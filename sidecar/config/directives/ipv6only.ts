import { Type } from '../../../feedback/schema-type.ts'

/** `ipv6only` of `listen`. Listeners of IPv6 never take IPv4: `on` says nothing new, and `off` cannot be obeyed. */
export const ipv6only = Type.Literal('on', {
  description: '"on": IPv4 needs a "listen" with an address of its own',
})
