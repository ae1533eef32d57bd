/** All metrics of this server. `make update` writes them to docs/reference/metrics.md. */
import { STATUS_CODES } from 'node:http';
import { among, first, oneOf, registered } from './labels.ts';
import { collected, counter, durations } from './registry.ts';

/** Resources of requests, by their plural names. */
export const resources = registered(
  1_000,
  'cached or discovered resources; empty for other paths and for unauthenticated callers',
);
/** The server that responds to a request: this server, or kube-apiserver through the gateway. */
const backends = oneOf('platform-apiserver', 'kube-apiserver');

// Verbs are limited to a list, because clients can send any method.
const verbs = oneOf<string>(
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'post',
  'put',
  'head',
);
const codes = among([...Object.keys(STATUS_CODES), '499'], 'HTTP status, or 499 if the client disconnected first');
const clients = first(200, 'OAuth clients of the configuration; empty for logins on the pages and for unknown clients');
const grants = first(20, 'supported grant types; empty for logins on the pages and for unsupported grant types');
/** `plural.group`, from the cluster's discovery. */
const cachedResources = first(2_000, 'cached resources as `PLURAL.GROUP`');
const collections = first(1_000, 'resources that the server reads');
const caches = first(200, 'names of caches, limiters and queues in the source code');
const loginOutcomes = oneOf<string>(
  'LoggedIn',
  'PasswordChangeRequired',
  'WrongPassword',
  'UnknownUser',
  'NoPassword',
  'Disabled',
  'Limited',
  'Refused',
  'Unavailable',
);

// Requests

export const requests = counter({
  name: 'requests_total',
  help: 'Completed requests, except probes, by verb, resource, backend and HTTP status.',
  labels: { verb: verbs, resource: resources, backend: backends, code: codes },
});

export const requestDurations = durations(
  {
    name: 'request_duration_seconds',
    help: 'Time from the first byte of a request to the last byte of its response, except for watches, streams and probes.',
    labels: { verb: verbs, resource: resources, backend: backends },
  },
  [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
);

export const requestsInFlight = collected({
  name: 'requests_in_flight',
  help: 'Requests in progress, except watches, streams and probes. `body` counts incomplete logins, and `authentication` counts requests that wait for authentication.',
  labels: { kind: oneOf('read', 'change', 'login', 'body', 'anonymous', 'authentication') },
});

export const openWatches = collected({ name: 'open_watches', help: 'Open watches and streams.', labels: {} });

export const connections = collected({
  name: 'connections',
  help: 'Open connections of clients by listener.',
  labels: { listener: oneOf('http', 'https', 'aggregated') },
});

export const sentBytes = collected(
  {
    name: 'sent_bytes_total',
    help: 'Bytes sent to clients by listener, including the overhead of TLS.',
    labels: { listener: oneOf('http', 'https', 'aggregated') },
  },
  'counter',
);

// Logins and tokens

export const logins = counter({
  name: 'logins_total',
  help: 'Logins of users by outcome, grant and OAuth client. `Unavailable`: the server or an identity provider failed.',
  labels: { outcome: loginOutcomes, grant: grants, client: clients },
});

export const limitedAttempts = counter({
  name: 'login_attempts_limited_total',
  help: 'Authentication attempts refused because of earlier failures, by the kind of secret.',
  labels: { guesses: oneOf('password', 'secret', 'user code', 'provider code') },
});

export const tokensIssued = counter({
  name: 'tokens_issued_total',
  help: 'Access tokens issued by grant and OAuth client.',
  labels: { grant: grants, client: clients },
});

export const tokenRequestsRefused = counter({
  name: 'token_requests_refused_total',
  help: 'Refused token requests by grant, error code and OAuth client.',
  labels: {
    grant: grants,
    error: first(30, 'error code of the response, or `aborted` if the client disconnected'),
    client: clients,
  },
});

export const sessions = collected({
  name: 'sessions',
  help: 'Sessions in the cache of this replica, including expired and revoked sessions.',
  labels: {},
});

export const reuses = counter({
  name: 'token_reuses_total',
  help: 'Sessions revoked because a refresh token or an authorization code was used again.',
  labels: { token: oneOf('refresh token', 'code') },
});

export const hashesWaiting = collected({
  name: 'password_hashes_waiting',
  help: 'Password checks that wait for a thread.',
  labels: {},
});

export const hashDurations = durations({
  name: 'password_hash_duration_seconds',
  help: 'Duration of password checks, excluding the wait for a thread.',
  labels: {},
});

// Authorization

export const accessReviews = durations({
  name: 'access_review_duration_seconds',
  help: 'Duration of SubjectAccessReviews at kube-apiserver by result, including the time in the queue.',
  labels: { result: oneOf('allowed', 'denied', 'error') },
});

export const cachedDecisions = counter({
  name: 'access_review_cache_hits_total',
  help: 'Decisions taken from the cache of access reviews.',
  labels: {},
});

// kube-apiserver

export const upstreamDurations = durations({
  name: 'upstream_duration_seconds',
  help: 'Time from forwarding a request to receiving the head of the response from kube-apiserver.',
  labels: { verb: verbs, result: oneOf('ok', 'error', 'aborted') },
});

export const upstreamConnections = collected({
  name: 'upstream_connections',
  help: 'Connections of the gateway to kube-apiserver by state.',
  labels: { state: oneOf('busy', 'idle') },
});

export const lists = counter({
  name: 'cache_lists_total',
  help: 'Complete lists read from kube-apiserver. The cache of a resource reads a list when it starts, and again after its watch is lost.',
  labels: { resource: collections },
});

export const watchEvents = counter({
  name: 'watch_events_total',
  help: 'Changes received from kube-apiserver by resource.',
  labels: { resource: collections },
});

export const fanOutDelays = durations(
  {
    name: 'watch_fan_out_delay_seconds',
    help: 'Time from the arrival of a change to its last write to an open watch. Changes sent together count once, with the longest time.',
    labels: {},
  },
  [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
);

// Caches

export const storeObjects = collected({
  name: 'store_objects',
  help: 'Cached objects of a resource.',
  labels: { resource: cachedResources },
});

export const storeBytes = collected({
  name: 'store_bytes',
  help: 'Bytes of the cached objects of a resource, outside the V8 heap.',
  labels: { resource: cachedResources },
});

export const storeAge = collected({
  name: 'store_age_seconds',
  help: 'Time since the watch of a resource last received data.',
  labels: { resource: cachedResources },
});

export const storeLimit = collected({
  name: 'store_limit_bytes',
  help: 'Maximum total bytes of all cached resources (`cache.maxBytes`).',
  labels: {},
});

export const cacheEntries = collected({
  name: 'cache_entries',
  help: 'Entries of a cache, limiter or queue whose keys come from requests.',
  labels: { name: caches },
});

export const cacheBytes = collected({
  name: 'cache_bytes',
  help: 'Estimated bytes of the entries of a cache, limiter or queue whose keys come from requests.',
  labels: { name: caches },
});

// Logs and audit

export const logStoreDurations = durations({
  name: 'log_store_duration_seconds',
  help: 'Duration of requests to the log store by operation and result. An export or tail is one request.',
  labels: {
    operation: oneOf<string>('query', 'histogram', 'statistics', 'export', 'follow', 'check'),
    result: first(60, '`ok`, the error code, or `ended` if the caller disconnected'),
  },
});

export const logRecordsDropped = counter({
  name: 'log_records_dropped_total',
  help: 'Records that the log store returned although the caller is not allowed to see them, by store.',
  labels: { store: first(10, 'configured log store') },
});

export const auditEvents = counter({ name: 'audit_events_total', help: 'Audit events of all levels.', labels: {} });

export const auditEventsDropped = counter({
  name: 'audit_events_dropped_total',
  help: 'Lost audit events by sink.',
  labels: { sink: oneOf('log', 'webhook') },
});

// The server itself

export const traceSpansDropped = counter({
  name: 'trace_spans_dropped_total',
  help: 'Spans that were not exported, because the queue was full, the receiver did not accept them, or the tracing settings changed before the spans ended.',
  labels: {},
});

export const configurationProblems = collected({
  name: 'configuration_problems',
  help: 'Number of problems in the latest configuration, plus the unresolved references of the active configuration.',
  labels: {},
});

export const certificateExpiry = collected({
  name: 'serving_certificate_expiry_timestamp_seconds',
  help: 'Expiry of the serving certificate, in Unix seconds.',
  labels: {},
});

export const memoryLimit = collected({
  name: 'memory_limit_bytes',
  help: 'Memory limit of the container; 0 without a limit.',
  labels: {},
});

export const leader = collected({
  name: 'leader',
  help: '1 for the replica that deletes expired objects, 0 for all other replicas.',
  labels: {},
});

export const buildInfo = collected({
  name: 'build_info',
  help: 'Always 1. The labels are the versions of the server and of Node.js.',
  labels: { version: first(1, 'version of the server'), nodejs: first(1, 'version of Node.js') },
});
