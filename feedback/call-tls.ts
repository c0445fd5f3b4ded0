/** What is known of a client's connection that speaks TLS: variables and logs read it. */
export interface CallTls {
  /** `TLSv1.3` */
  readonly protocol: string
  /** As OpenSSL calls it. */
  readonly cipher: string
  /** The host that the client has named; empty where it has named none. */
  readonly serverName: string
  /** Whether a session from before was taken up again. */
  readonly reused: boolean
  /** The protocol inside that both have agreed upon; empty where they have not spoken of it. */
  readonly alpn: string
  /** What the client would have used, joined by colons; what has no name here, by its number. */
  readonly ciphers: string
  readonly curves: string
  /** `NONE`, `SUCCESS`, or `FAILED:` and why. */
  readonly verify: string
  /** Undefined where the client has shown none. */
  readonly certificate: CallCertificate | undefined
}

/** What a client of `stream` has asked of TLS, read without taking part in it; empty where it has not. */
export interface CallPreread {
  /** Lower case. */
  readonly serverName: string
  /** The latest version that it speaks: `TLSv1.3`. */
  readonly protocol: string
  /** Protocols that it would speak inside, the one it likes best first. */
  readonly alpn: readonly string[]
}

/** A client's certificate, in nginx's forms. */
export interface CallCertificate {
  /** Who it is for, and who has signed it, by RFC 2253: `CN=name,O=organisation`. */
  readonly subject: string
  readonly issuer: string
  /** The same in OpenSSL's older form: `/O=organisation/CN=name`. */
  readonly subjectLegacy: string
  readonly issuerLegacy: string
  /** Hexadecimal, upper case. */
  readonly serial: string
  /** SHA-1, hexadecimal, lower case. */
  readonly fingerprint: string
  readonly pem: string
  /** `Nov 30 10:00:00 2026 GMT` */
  readonly validFrom: string
  readonly validTo: string
}
