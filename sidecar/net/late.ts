/**
 * Judges a time that is over, once what has come in meanwhile has been looked at. Timers run before sockets are read:
 * where the process could not run for a while (it was stopped, the machine slept, the loop was held up), the answer that
 * was waited for may have been lying there all the time.
 * @returns takes it back
 */
export function afterReading(judge: () => void): () => void {
  // What is set now runs after the next look at the sockets.
  const immediate = setImmediate(judge)
  return () => clearImmediate(immediate)
}
