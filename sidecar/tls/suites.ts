/** Suites of TLS 1.3, which have no part in OpenSSL's lists of ciphers: Node takes both in one text. */
export const suites = 'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256'
