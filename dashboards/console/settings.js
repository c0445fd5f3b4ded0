/*
 * What a reader has chosen: kept by the browser where it lets us, and for this visit where not.
 */

/** Spans that numbers can be over, milliseconds. */
export const spans = [10_000, 60_000, 300_000]

/**
 * @typedef {object} Choices
 * @property {'light' | 'dark' | 'auto'} scheme
 * @property {number} span
 * @property {boolean} rail whether attempts are listed beside the groups
 * @property {boolean} keys whether single keys do something
 */

/** @type {Choices} */
const choices = { scheme: 'auto', span: spans[0], rail: true, keys: true }
const key = 'evenkeel'

try {
  const kept = JSON.parse(localStorage.getItem(key) ?? '{}')
  if (['light', 'dark', 'auto'].includes(kept.scheme)) choices.scheme = kept.scheme
  if (spans.includes(kept.span)) choices.span = kept.span
  if (typeof kept.rail === 'boolean') choices.rail = kept.rail
  if (typeof kept.keys === 'boolean') choices.keys = kept.keys
} catch {
  // The browser keeps nothing for us, or something else did.
}

/** @returns {Readonly<Choices>} */
export function chosen() {
  return choices
}

/** @param {Partial<Choices>} some */
export function choose(some) {
  Object.assign(choices, some)
  try {
    localStorage.setItem(key, JSON.stringify(choices))
  } catch {
    // Then it holds for this visit.
  }
}
