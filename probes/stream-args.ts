import { Type } from '../feedback/schema-type.ts'

/** What kinds take that send bytes as they stand and keep what comes back. */
export const streamArgs = Type.Object(
  {
    send: Type.Optional(
      Type.String({
        description: 'what is sent: `data:TEXT` with \\n, \\r, \\t, \\\\ and \\xHH, or the path of a file',
      }),
    ),
    max_response: Type.Optional(
      Type.String({
        format: 'size',
        description: 'how much of the answer is kept; 256k unless given, 0 waits for none',
      }),
    ),
  },
  { additionalProperties: false },
)
