/** A mistake in the configuration: nginx's text, and where it stands. */
export class ConfigError extends Error {
  readonly file: string
  /** 1-based; 0 when the mistake has no line (a file that cannot be read). */
  readonly line: number
  readonly text: string

  constructor(file: string, line: number, text: string) {
    super(line > 0 ? `${file}:${line}: ${text}` : `${file}: ${text}`)
    this.name = 'ConfigError'
    this.file = file
    this.line = line
    this.text = text
  }
}
