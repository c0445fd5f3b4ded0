import type { Context } from '../directive.ts'

/**
 * Directives of nginx and Angie that have no entry of their own. An asterisk stands for any text. Each is looked
 * for after the table, so a directive that is built later goes out of here and into the table.
 */

/** Accepted outside of all blocks, without effect. */
const noticedInMain = words(`
  daemon debug_points env events load_module lock_file master_process pcre_jit ssl_engine
  ssl_object_cache_inheritable thread_pool
  timer_resolution user worker_cpu_affinity worker_priority worker_rlimit_core worker_rlimit_nofile
  working_directory
`)

/** Accepted in `http` and below, without effect: they tune what is not there, or find files that are not served. */
const noticedInHttp = words(`
  aio aio_write client_body_buffer_size client_body_in_single_buffer client_body_temp_path
  connection_pool_size directio directio_alignment disable_symlinks error_log etag grpc_socket_keepalive
  grpc_ssl_certificate_cache gzip gzip_* http3 http3_* http2_body_preread_size http2_chunk_size http2_idle_timeout
  http2_max_concurrent_pushes http2_max_field_size http2_max_header_size http2_max_requests http2_pool_size
  http2_push http2_push_preload http2_recv_buffer_size http2_recv_timeout http2_streams_index_size
  if_modified_since index keepalive_disable lingering_* log_not_found log_subrequest map_hash_* max_ranges
  msie_padding msie_refresh open_file_cache open_file_cache_* open_log_file_cache output_buffers
  postpone_output quic_* proxy_headers_hash_* proxy_max_temp_file_size proxy_send_lowat proxy_socket_keepalive proxy_ssl_certificate_cache
  proxy_temp_* read_ahead request_pool_size rewrite_log root send_lowat sendfile
  sendfile_max_chunk server_names_hash_* ssl_buffer_size ssl_certificate_cache ssl_certificate_compression
  ssl_early_data ssl_stapling ssl_stapling_* subrequest_output_buffer_size tcp_nodelay tcp_nopush types
  types_hash_* uninitialized_variable_warn variables_hash_*
`)

/** The same in `stream` and below. */
const noticedInStream = words(`
  error_log map_hash_* open_log_file_cache proxy_socket_keepalive proxy_ssl_certificate_cache server_names_hash_*
  ssl_certificate_cache ssl_certificate_compression ssl_stapling ssl_stapling_* tcp_nodelay variables_hash_*
`)

/** Refused by name for now. */
const later = words(`
  acme acme_* add_trailer api_config_files auth_request_set bind_conn
  chunked_transfer_encoding client geo grpc_allow_upstream grpc_bind grpc_bind_dynamic
  grpc_ignore_headers grpc_ssl_conf_command grpc_ssl_key_log keepalive_min_timeout
  max_headers proxy_allow_upstream proxy_bind proxy_cookie_*
  proxy_force_ranges proxy_ignore_headers proxy_pass_trailers proxy_ssl_alpn proxy_ssl_conf_command
  proxy_ssl_key_log proxy_ssl_ntls recursive_error_pages server_name_in_redirect split_clients
  ssl_conf_command ssl_ech_file ssl_encrypted_hello_key ssl_key_log ssl_ntls ssl_ocsp ssl_ocsp_cache
  ssl_ocsp_responder
`)

/** The same in `stream`, where other directives have these names elsewhere. */
const laterInStream = words('pass server_name set')

/** Refused by name: they would change what a client sees, and are not what this program is for. */
const never = words(`
  *_pass add_after_body add_before_body addition_types alias allow ancient_browser ancient_browser_value
  auth_* autoindex autoindex_* charset charset_* client_body_in_file_only create_full_put_path dav_* deny
  docker_* empty_gif expires fastcgi_* flv geoip_* gunzip gunzip_* image_filter image_filter_* js_* limit_*
  mail memcached_* min_delete_depth mirror mirror_* modern_browser modern_browser_value mp4 mp4_* mqtt mqtt_* perl
  perl_* perl_modules proxy_cache proxy_cache_* proxy_download_rate proxy_limit_rate proxy_no_cache proxy_store
  proxy_store_access proxy_upload_rate random_index rdp_* referer_hash_* satisfy scgi_* secure_link secure_link_* slice ssi ssi_*
  stub_status sub_filter sub_filter_* try_files userid userid_* uwsgi_* valid_referers wasm_* xml_entities
  xslt_*
`)

export type Treatment = 'noticed' | 'later' | 'never'

/**
 * What becomes of a directive that is not in the table.
 * @returns undefined when nobody knows it; `elsewhere` when it is known but not at this place
 */
export function foreign(name: string, context: Context): Treatment | 'elsewhere' | undefined {
  if (noticedIn(context).some((names) => covers(names, name))) return 'noticed'
  if (covers(later, name)) return 'later'
  if (context.startsWith('stream') && laterInStream.includes(name)) return 'later'
  if (covers(never, name)) return 'never'
  return noticed.some((names) => covers(names, name)) ? 'elsewhere' : undefined
}

const noticed = [noticedInMain, noticedInHttp, noticedInStream]

/** A group has nothing that could be without effect. */
function noticedIn(context: Context): readonly (readonly string[])[] {
  if (context === 'main') return [noticedInMain]
  if (context === 'upstream' || context === 'stream upstream') return []
  return context === 'stream' || context === 'stream server' ? [noticedInStream] : [noticedInHttp]
}

/** The lists, for the reference. */
export const foreignNames = {
  noticed: [...new Set(noticed.flat())].sort(),
  later: [...later, ...laterInStream.map((name) => `${name} (stream)`)].sort(),
  never: [...never].sort(),
}

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

/** Whether one of the names is this one; an asterisk in them stands for any text. */
function covers(names: readonly string[], name: string): boolean {
  return names.some((pattern) => {
    const star = pattern.indexOf('*')
    if (star < 0) return pattern === name
    return name.startsWith(pattern.slice(0, star)) && name.endsWith(pattern.slice(star + 1))
  })
}
