import { createRequire } from 'node:module'

// An import would make Node read all that `node:http` has, and with its WebSocket the whole of its built-in client: a
// tenth of the time of each start, and again in every thread.
const require = createRequire(import.meta.url)

// What is required under that name is that module.
export const { STATUS_CODES } = require('node:http') as typeof import('node:http')
