/*
 * What was changed while the program runs, in words.
 */

/** @typedef {import('./told.js').ChangeLayout} Change */

/** @type {Readonly<Record<string, string>>} */
const names = { state: 'state', weight: 'weight', max_conns: 'most connections' }

/**
 * @param {string} kind
 * @param {string | number | undefined} value
 */
function valueText(kind, value) {
  return kind === 'max_conns' && value === 0 ? 'no limit' : String(value)
}

/**
 * What holds, and what the file says.
 * @param {Change} change
 */
export function changeText({ kind, target, whole, value, file }) {
  const who = whole && kind !== 'added' ? `all of ${target}` : target
  if (kind === 'added') return `${value} is added`
  if (kind === 'removed') return `${who} is removed; the file says: ${file}`
  const said = file === undefined ? '' : `; the file says ${valueText(kind, file)}`
  return `${who}: ${names[kind] ?? kind} is ${valueText(kind, value)}${said}`
}

/**
 * The same of a peer's own line, where it stands beside its name.
 * @param {Change} change
 */
export function badgeText({ kind, value, file }) {
  if (kind === 'added') return 'added'
  const said = file === undefined ? '' : `, file: ${valueText(kind, file)}`
  return kind === 'state' ? `set ${value}${said}` : `${names[kind] ?? kind} ${valueText(kind, value)}${said}`
}

/**
 * Those that hold of a peer.
 * @param {import('./peer.js').Peer} peer
 * @returns {Change[]}
 */
export function changesOf({ layout, group }) {
  const { changed = [], name, server, line } = layout
  if (changed.length === 0) return []
  const own = (group.layout.changes ?? []).filter(({ kind, target, whole }) => {
    return changed.includes(kind) && target === (whole ? (line ?? server) : name)
  })
  // What is said of the address itself holds before what is said of its line.
  return own.filter(({ kind, whole }) => !whole || !own.some((other) => other.kind === kind && !other.whole))
}
