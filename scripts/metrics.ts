// Writes what is made from the table of metrics: docs/metrics.md.
import { writeFileSync } from 'node:fs'
import { latencyBucketsMs, sessionBucketsMs } from '../feedback/fields.ts'
import { metricsTable } from '../feedback/metrics-table.ts'
import { attemptReasons, denialReasons, exclusionReasons, signalReasons } from '../feedback/reasons.ts'
import { responseKinds } from '../feedback/resolver-counts.ts'
import { deeds } from '../sidecar/admin/runtime-facts.ts'

/** The page as it should be. */
export function metricsPage(): string {
  const rows = metricsTable.map(({ name, type, help, labels }) => {
    const said = labels.map((label) => `\`${label}\``).join(' ')
    return `| \`${name}\` | ${type} | ${said} | ${help.replaceAll('|', '\\|')} |`
  })
  return `# Metrics

Made from \`feedback/metrics-table.ts\` by \`npm run docs\`; a test checks that it is current.

\`/metrics\` on the admin server serves these, in Prometheus' text format or, where it is asked for, in OpenMetrics. Times are in seconds. Buckets of
the histograms end at ${latencyBucketsMs.map((ms) => ms / 1000).join(', ')} s, those of \`…_session_seconds\` at
${sessionBucketsMs.map((ms) => ms / 1000).join(', ')} s. Metrics of the process itself (memory, CPU time, event loop, garbage collection) come under
prom-client's names.

A group of \`stream\` has \`upstream="stream/NAME"\`. What is said of requests holds for its sessions: \`code\` is 200 for one that was carried, and 502 for one that
found nobody or, over UDP, no answers; an attempt is a connection that was tried, the header is the peer's first byte. What sessions do not have is left out: statuses of peers, kept
connections, and \`…_request_seconds\`, in whose place \`…_session_seconds\` stands, since how long a session lasts is its client's affair and says nothing of the peer.

## Which one answers what

| Question | Metric |
|---|---|
| How many requests, and how do they end for clients? | \`evenkeel_upstream_responses_total\` by \`code\`; 499 is a client that left before the end of its answer, in whichever phase |
| How long do clients wait, retries and all? | \`evenkeel_upstream_request_seconds\` |
| Is it us or the peer? | \`evenkeel_peer_header_seconds\` and \`evenkeel_peer_response_seconds\` are the peer's part of it. \`nodejs_eventloop_lag_p99_seconds\` is ours, \`evenkeel_upstream_retries_waiting\` waits on purpose |
| Which failures did retries hide from clients? | \`evenkeel_upstream_rescued_total\` (requests), \`evenkeel_upstream_hidden_failures_total\` (attempts) |
| What went wrong with attempts, and where? | \`evenkeel_peer_attempt_reasons_total\` by \`reason\`, \`evenkeel_peer_responses_total\` by \`code\`: retried attempts too. Calls of gRPC have 200 there however they end: \`evenkeel_peer_grpc_responses_total\` by \`code\`, a name as \`UNAVAILABLE\` |
| Why did requests get no attempt, or no further one? | \`evenkeel_upstream_denials_total\` by \`reason\`: nobody there, budget spent, not to be repeated |
| Is there anybody left to ask? | \`evenkeel_peer_excluded\`: 1 at the reason that keeps a peer out, 0 at all reasons of one that may be picked |
| What should a peer get, and what does it get? | \`evenkeel_peer_share_ratio\`; the rate of \`evenkeel_peer_attempts_total\` |
| What does the method go by? | \`evenkeel_peer_average_seconds\`, \`evenkeel_peer_success_ratio\`, \`evenkeel_peer_expected_seconds\`; with \`feedback\` \`evenkeel_peer_reported_value\` |
| Does a peer hang? | \`evenkeel_peer_waiting_age_seconds\` grows while \`evenkeel_peer_in_flight\` does not fall |
| Do probes see what clients see? | \`evenkeel_peer_probe_failures_total\`, \`evenkeel_peer_unhealthy_total\`, beside \`evenkeel_peer_failures_total\` |
| Are connections used again? | \`evenkeel_peer_reuses_total\` beside \`evenkeel_peer_connects_total\`, which took \`evenkeel_peer_connect_seconds_total\` |
| Does a new peer still warm up? | \`evenkeel_peer_ramp_ratio\` below 1 |
| Does one track do worse than another? | label \`track\` on the above; [canary.md](canary.md) has a verdict |
| Which configuration runs, and did the last reload work? | \`evenkeel_config_generation\`, \`evenkeel_config_last_reload_successful\` |
| How long do sessions of \`stream\` last, and how soon does their peer answer? | \`evenkeel_upstream_session_seconds\`; \`evenkeel_peer_connect_seconds_total\` by \`evenkeel_peer_connects_total\`, \`evenkeel_peer_header_seconds\` |
| Do requests wait for a peer, and do they get one? | \`evenkeel_upstream_queue_waiting\`, \`evenkeel_upstream_queue_entered_total\`, of which \`…_dropped_total\` and \`…_timedout_total\` got none; \`…_overflows_total\` found no room |
| Do sessions stay with their peers? | \`evenkeel_upstream_sticky_picks_total\` by \`status\`; where they are learnt, \`evenkeel_upstream_sticky_sessions\` beside \`…_max\`, and \`…_evicted_total\` |
| Do the backups have the work? | \`evenkeel_upstream_on_backups\` |
| Are names of servers still resolved? | \`evenkeel_resolver_name_failing\`, \`evenkeel_resolver_name_addresses\`, \`evenkeel_resolver_responses_total\` by \`status\` |
| Does the file say what runs? | \`evenkeel_upstream_changes_in_force\`: what was changed by the admin API and not taken back |
| Do the instances hear each other? | \`evenkeel_fleet_up\`, \`evenkeel_upstream_fleet_age_seconds\`, \`evenkeel_upstream_fleet_members\` |

\`requests_total\` counts requests as they come to a group, \`responses_total\` as they end; what is between the two is in progress. A request that an error page
hands to a second group came to both, and ended once.

## Exemplars

With tracing switched on, the buckets of \`evenkeel_upstream_request_seconds\` and \`evenkeel_peer_header_seconds\` each carry the trace of a request that fell into
them last and whose trace is kept: \`# {trace_id="…",span_id="…"}\`, the value and its time. Only OpenMetrics has a place for them. Prometheus asks for that form by
itself, and keeps them where it runs with \`--enable-feature=exemplar-storage\`.

## How many series

No label is ever controlled by a client: not by its host, path, method or headers. \`upstream\`, \`peer\`, \`track\`, \`resolver\` and \`name\` are the configuration's and
of its names' addresses, \`reason\`, \`status\`, \`change\` and \`type\` are of closed lists, \`code\` is a status from 100 to 599 or \`xxx\` for all others, of gRPC one of 17 names. Reasons have a series from the start, so that rates see the first, and so have the statuses that alerts look for; others once they have occurred.
That makes about 90 series for each peer. A scrape of 200 peers gives way to requests every half millisecond.

The series of a peer stay as long as the configuration has it, and go when its last request ends after that (until then it is \`draining\`). Its slot in memory is
free for the next one, which begins at 0: for Prometheus that is a counter that was reset. Over a reload everything else goes on.

## All of them

| Metric | Type | Labels | Meaning |
|---|---|---|---|
${rows.join('\n')}

\`reason\` is one of a closed list, the same in logs, metrics and the admin API.

- Of an attempt: ${list(attemptReasons)}.
- Of no attempt, or no further one: ${list(denialReasons)}.
- Of an answer that brought no value to take (\`feedback\`): ${list(signalReasons)}.
- Of a peer that gets no requests: ${list(exclusionReasons.filter((reason) => reason !== 'tried'))}.

\`status\` is \`new\`, \`hit\` or \`miss\` of a sticky session, and of a message to a DNS server ${list(responseKinds)}. \`type\` is \`name\`, \`srv\` or
\`addr\` of what was looked up, \`a\`, \`aaaa\`, \`srv\` or \`ptr\` of what was asked for it. \`change\` is ${list(deeds)}.
`
}

function list(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(' ')
}

if (import.meta.main) writeFileSync(new URL('../docs/metrics.md', import.meta.url), metricsPage())
