import { STATUS_CODES } from './node-http.ts'

/** Where nginx's phrases differ from those of the standard. */
const nginxPhrases = new Map([
  [405, 'Not Allowed'],
  [408, 'Request Time-out'],
  [413, 'Request Entity Too Large'],
  [414, 'Request-URI Too Large'],
  [416, 'Requested Range Not Satisfiable'],
  [503, 'Service Temporarily Unavailable'],
  [504, 'Gateway Time-out'],
])

/** The words for a status, in the status line as on the page; undefined for one that nobody knows. */
export function statusPhrase(status: number): string | undefined {
  return nginxPhrases.get(status) ?? STATUS_CODES[status]
}

const pages = new Map<string, Buffer>()

/**
 * The page for a redirect or an error that has no page of its own.
 * @param name what it says at its foot
 * @param more what it says beside the status
 * @returns undefined for statuses that have none: those below 300 and unknown ones
 */
export function builtinPage(status: number, name: string, more?: string): Buffer | undefined {
  if (status < 300 || status > 599 || status === 304) return undefined
  const phrase = statusPhrase(status)
  if (phrase === undefined) return undefined
  const key = more === undefined ? `${status} ${name}` : `${status} ${name} ${more}`
  let page = pages.get(key)
  if (!page) {
    const title = `${status} ${phrase}`
    page = Buffer.from(
      `<!doctype html>\n<html>\n<head><title>${title}</title></head>\n` +
        `<body style="text-align: center">\n<h1>${title}</h1>\n${more === undefined ? '' : `<p>${more}</p>\n`}<hr>\n<p>${name}</p>\n</body>\n</html>\n`,
    )
    pages.set(key, page)
  }
  return page
}
