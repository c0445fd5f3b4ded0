import fc from 'fast-check'

// The same cases in every run: one that fails here fails everywhere.
fc.configureGlobal({ seed: 1 })

export { fc }
