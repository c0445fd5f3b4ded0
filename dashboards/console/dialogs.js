/*
 * Questions that have to be answered before anything goes on: each is a dialog of its own, and the focus goes back to
 * where it was.
 */

import { h, setHidden, setText } from './dom.js'

/**
 * Shows a dialog until it is answered. Enter in a field answers like the last button, Escape like the first.
 * @template T
 * @param {string} title
 * @param {(Node | string)[]} content
 * @param {string} yes what the button says that answers
 * @param {() => T | undefined | Promise<T | undefined>} answer undefined: it stays open
 * @returns {Promise<T | undefined>} undefined: it was let be
 */
function show(title, content, yes, answer) {
  return new Promise((resolve) => {
    /** @param {T | undefined} value */
    const end = (value) => {
      resolve(value)
      dialog.close()
    }
    const accept = h('button', { type: 'button', class: 'strong', onclick: () => void give() }, yes)
    const cancel = h('button', { type: 'button', onclick: () => end(undefined) }, 'Cancel')
    let busy = false
    const give = async () => {
      if (busy) return
      busy = true
      accept.disabled = true
      const value = await answer()
      busy = false
      accept.disabled = false
      if (value !== undefined) end(value)
    }
    const dialog = h(
      'dialog',
      {
        class: 'question',
        'aria-label': title,
        onclose: () => {
          dialog.remove()
          resolve(undefined)
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement)) return
          event.preventDefault()
          void give()
        },
      },
      h('h2', {}, title),
      ...content,
      h('p', { class: 'answers' }, cancel, accept),
    )
    document.body.append(dialog)
    dialog.showModal()
    const first = dialog.querySelector('input')
    // What cannot be taken back so easily is not to be one Enter away.
    ;(first ?? cancel).focus()
  })
}

/**
 * @param {boolean} wrong whether one was given already
 * @returns {Promise<string | undefined>}
 */
export function askToken(wrong) {
  const field = h('input', { type: 'password', autocomplete: 'off', spellcheck: 'false' })
  const about =
    'It stands in the file that admin_token_file names. It is kept for as long as this page is open.'
  const error = h('p', { class: 'error', role: 'alert' }, wrong ? 'That is not the token.' : '')
  return show(
    'A token is needed',
    [h('p', {}, about), h('label', { class: 'field' }, 'Token', field), error],
    'Go on',
    () => {
      const text = field.value.trim()
      setText(error, text === '' ? 'There is no token without a character.' : '')
      return text === '' ? undefined : text
    },
  )
}

/**
 * @param {string} title
 * @param {string} text
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
export async function confirm(title, text, yes) {
  return (await show(title, [h('p', {}, text)], yes, () => true)) ?? false
}

/**
 * Asks for a server to add, until it is added or let be.
 * @param {string} group
 * @param {(server: Record<string, string | number | boolean>) => Promise<string | undefined>} add says what is wrong; undefined: it is done
 */
export async function askServer(group, add) {
  const server = h('input', {
    type: 'text',
    placeholder: '10.0.0.4:80',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  const weight = h('input', { type: 'number', min: 1, placeholder: '1' })
  const limit = h('input', { type: 'number', min: 0, placeholder: 'none' })
  const more = h('input', { type: 'text', placeholder: 'max_fails=3 fail_timeout=5s', spellcheck: 'false' })
  const backup = h('input', { type: 'checkbox' })
  const error = h('p', { class: 'error', role: 'alert', hidden: true })
  const fields = [
    h('label', { class: 'field' }, 'Server', server),
    h('label', { class: 'field' }, 'Weight', weight),
    h('label', { class: 'field' }, 'Most connections', limit),
    h('label', { class: 'field' }, 'Other parameters', more),
    h('label', { class: 'check' }, backup, ' Only once no primary is ready (backup)'),
  ]
  await show(`Add a server to ${group}`, [...fields, error], 'Add', async () => {
    const wrong = await add({
      server: server.value.trim(),
      ...(weight.value === '' ? {} : { weight: Number(weight.value) }),
      ...(limit.value === '' ? {} : { max_conns: Number(limit.value) }),
      ...(backup.checked ? { backup: true } : {}),
      ...parameters(more.value),
    })
    setHidden(error, wrong === undefined)
    setText(error, wrong ?? '')
    return wrong === undefined ? true : undefined
  })
}

/**
 * Parameters as nginx has them written.
 * @param {string} text
 * @returns {Record<string, string | boolean>}
 */
function parameters(text) {
  return Object.fromEntries(
    text
      .split(/\s+/)
      .filter((word) => word !== '')
      .map((word) => {
        const at = word.indexOf('=')
        return at < 0 ? [word, true] : [word.slice(0, at), word.slice(at + 1)]
      }),
  )
}
