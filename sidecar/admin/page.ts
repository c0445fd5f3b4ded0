import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Everything that the live page is made of, below dashboards/console; nothing else in there is served. */
export const pageFiles = [
  'index.html',
  'console.css',
  'icon.svg',
  'attempt-entry.js',
  'attempt-list.js',
  'attempts.js',
  'change-texts.js',
  'chart.js',
  'dialogs.js',
  'dom.js',
  'explanation.js',
  'fleet-view.js',
  'format.js',
  'group-changes.js',
  'group-figures.js',
  'group-list.js',
  'group-notes.js',
  'group-section.js',
  'group-tracks.js',
  'group-ways.js',
  'group.js',
  'header.js',
  'help.js',
  'history.js',
  'keys.js',
  'link.js',
  'main.js',
  'method-words.js',
  'note.js',
  'peer-columns.js',
  'peer-controls.js',
  'peer-details.js',
  'peer-facts.js',
  'peer-order.js',
  'peer-row.js',
  'peer-table.js',
  'peer-texts.js',
  'peer.js',
  'poll.js',
  'requests.js',
  'running-config.js',
  'scheme.js',
  'settings.js',
  'store.js',
  'tip.js',
  'toolbar.js',
  'views.js',
  'words.js',
] as const

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/**
 * What the page may do: load its own files from here, and ask this server. Nothing goes to another host, nothing
 * inline runs, no text can become markup, and no other page can frame it.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

interface PageFile {
  readonly body: Buffer
  readonly type: string
  readonly etag: string
}

let loaded: ReadonlyMap<string, PageFile> | undefined

/** The files, read once. @throws where one is missing: the installation is broken */
function files(): ReadonlyMap<string, PageFile> {
  loaded ??= new Map(
    pageFiles.map((name) => {
      const body = readFileSync(new URL(`../../dashboards/console/${name}`, import.meta.url))
      const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
      return [name, { body, type: types[name.slice(name.lastIndexOf('.') + 1)]!, etag }]
    }),
  )
  return loaded
}

/** Changes whenever any of the files does: a page that was loaded before can tell that it is an old one. */
export function pageEdition(): string {
  const etags = Array.from(files().values(), ({ etag }) => etag)
  return createHash('sha256').update(etags.join()).digest('base64url').slice(0, 12)
}

/** `/console/NAME`: the files of the live page. The page itself is at `/`; see contents.ts. */
export function page(app: FastifyInstance): void {
  for (const [name, file] of files()) {
    if (name !== 'index.html') app.get(`/console/${name}`, (request, reply) => send(file, request, reply))
  }
}

/** Sends the page itself. */
export function sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('x-frame-options', 'DENY').header('cross-origin-opener-policy', 'same-origin')
  return send(files().get('index.html')!, request, reply)
}

function send(file: PageFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply
    .header('content-security-policy', pagePolicy)
    .header('referrer-policy', 'no-referrer')
    .header('cross-origin-resource-policy', 'same-origin')
    // Asked again each time: after an update of the program all files have to be of one kind.
    .header('cache-control', 'no-cache')
    .header('etag', file.etag)
  const known = (request.headers['if-none-match'] ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (known.includes(file.etag) || known.includes('*')) return reply.code(304).send()
  return reply.type(file.type).send(file.body)
}

/** Whether the client asks for HTML rather than for plain text: a browser does, and curl takes anything. */
export function wantsPage(accept: string | undefined): boolean {
  let html = 0
  let plain = 0
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = quality === undefined ? 1 : Number(quality.slice(2))
    if (type === 'text/html') html = weight
    if (type === 'text/plain') plain = weight
  }
  return html > 0 && html >= plain
}
