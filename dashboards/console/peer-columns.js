/*
 * The columns of the table of a group's peers.
 */

/** Columns in order. `sort` gives what rows are sorted by, the greatest first unless it says otherwise. */
export const columns = /** @type {const} */ ([
  { id: 'peer', title: 'Peer', label: 'Peer', about: 'In the order of the configuration, unless sorted' },
  { id: 'state', title: 'State', label: 'State', about: 'Worst first' },
  {
    id: 'share',
    title: 'Share',
    label: 'Share',
    about:
      'Its part of the attempts within the span. "Meant", the mark on the bar, is the mean of its chance to get the next request, looked at once a second. The bar is full at the greatest share in the group.',
  },
  {
    id: 'rate',
    title: 'Attempts/s',
    label: 'Attempts/s',
    about: 'Begun within the span; the line is the last minute',
  },
  {
    id: 'flight',
    title: 'In flight',
    label: 'In flight',
    about: 'Requests in progress now, and how many there may be',
  },
  {
    id: 'time',
    title: 'Time',
    label: 'Time',
    about: 'Mean time to the header within the span, the average that is kept, and what the method expects',
  },
  {
    id: 'well',
    title: 'Ended well',
    label: 'Ended well',
    about: 'Part of the attempts within the span, and why the others did not',
  },
  { id: 'probes', title: 'Probes', label: 'Probes', about: 'How the last one ended' },
])

/** @typedef {(typeof columns)[number]['id']} ColumnId */

/** Columns that are of something else where a group carries sessions. */
const ofSessions = {
  flight: {
    title: 'Sessions',
    label: 'Sessions',
    about: 'Sessions in progress now, and how many there may be',
  },
  time: {
    title: 'First byte',
    label: 'First byte',
    about:
      'Mean time within the span until the peer sent something, for which it may have waited for its client; and the averages that are kept of that, of connecting, and of what the method goes by',
  },
  well: {
    title: 'Ended well',
    label: 'Ended well',
    about: 'Part of the sessions within the span, and why the others did not',
  },
}

/**
 * What a column is called in the table of a group.
 * @param {ColumnId} id
 * @param {boolean} isStream
 * @returns {{ title: string, label: string, about: string }}
 */
export function headOf(id, isStream) {
  const other = isStream && Object.hasOwn(ofSessions, id) ? ofSessions[/** @type {'time'} */ (id)] : undefined
  return other ?? /** @type {(typeof columns)[number]} */ (columns.find((column) => column.id === id))
}
