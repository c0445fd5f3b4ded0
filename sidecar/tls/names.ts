/** OpenSSL's names of cipher suites that clients still offer, by their numbers (IANA's registry). */
const ciphers: ReadonlyMap<number, string> = new Map([
  [0x1301, 'TLS_AES_128_GCM_SHA256'],
  [0x1302, 'TLS_AES_256_GCM_SHA384'],
  [0x1303, 'TLS_CHACHA20_POLY1305_SHA256'],
  [0x1304, 'TLS_AES_128_CCM_SHA256'],
  [0x1305, 'TLS_AES_128_CCM_8_SHA256'],
  [0x002f, 'AES128-SHA'],
  [0x0035, 'AES256-SHA'],
  [0x003c, 'AES128-SHA256'],
  [0x003d, 'AES256-SHA256'],
  [0x009c, 'AES128-GCM-SHA256'],
  [0x009d, 'AES256-GCM-SHA384'],
  [0x0033, 'DHE-RSA-AES128-SHA'],
  [0x0039, 'DHE-RSA-AES256-SHA'],
  [0x0067, 'DHE-RSA-AES128-SHA256'],
  [0x006b, 'DHE-RSA-AES256-SHA256'],
  [0x009e, 'DHE-RSA-AES128-GCM-SHA256'],
  [0x009f, 'DHE-RSA-AES256-GCM-SHA384'],
  [0x00ff, 'TLS_EMPTY_RENEGOTIATION_INFO_SCSV'],
  [0xc009, 'ECDHE-ECDSA-AES128-SHA'],
  [0xc00a, 'ECDHE-ECDSA-AES256-SHA'],
  [0xc013, 'ECDHE-RSA-AES128-SHA'],
  [0xc014, 'ECDHE-RSA-AES256-SHA'],
  [0xc023, 'ECDHE-ECDSA-AES128-SHA256'],
  [0xc024, 'ECDHE-ECDSA-AES256-SHA384'],
  [0xc027, 'ECDHE-RSA-AES128-SHA256'],
  [0xc028, 'ECDHE-RSA-AES256-SHA384'],
  [0xc02b, 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  [0xc02c, 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  [0xc02f, 'ECDHE-RSA-AES128-GCM-SHA256'],
  [0xc030, 'ECDHE-RSA-AES256-GCM-SHA384'],
  [0xcca8, 'ECDHE-RSA-CHACHA20-POLY1305'],
  [0xcca9, 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  [0xccaa, 'DHE-RSA-CHACHA20-POLY1305'],
])

/** OpenSSL's names of groups. */
const groups: ReadonlyMap<number, string> = new Map([
  [0x0017, 'prime256v1'],
  [0x0018, 'secp384r1'],
  [0x0019, 'secp521r1'],
  [0x001d, 'X25519'],
  [0x001e, 'X448'],
  [0x0100, 'ffdhe2048'],
  [0x0101, 'ffdhe3072'],
  [0x0102, 'ffdhe4096'],
  [0x0103, 'ffdhe6144'],
  [0x0104, 'ffdhe8192'],
  [0x11eb, 'SecP256r1MLKEM768'],
  [0x11ec, 'X25519MLKEM768'],
  [0x11ed, 'SecP384r1MLKEM1024'],
])

/** The name of a cipher suite; `0x1a1a` of one that has none here. */
export function cipherName(number: number): string {
  return ciphers.get(number) ?? hexadecimal(number)
}

export function groupName(number: number): string {
  return groups.get(number) ?? hexadecimal(number)
}

function hexadecimal(number: number): string {
  return `0x${number.toString(16).padStart(4, '0')}`
}
