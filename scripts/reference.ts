// Writes what is made from the table of directives: the reference and the editors' schema.
import { writeFileSync } from 'node:fs'
import { jsonSchema } from '../sidecar/config/json-schema.ts'
import { reference } from '../sidecar/config/reference.ts'

const docs = new URL('../docs/', import.meta.url)
writeFileSync(new URL('reference.md', docs), reference())
writeFileSync(new URL('evenkeel.schema.json', docs), `${JSON.stringify(jsonSchema(), undefined, 2)}\n`)
