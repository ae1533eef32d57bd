/** The dashboard that a person on call reads from top to bottom. */
import { percent, thresholds } from '../../src/runtime/thresholds.ts';
import { chart, dashboard, stat, type Row } from './dashboard.ts';
import { own, percentiles, quantile, rate, series, sumBy } from './queries.ts';

const { errors, slowReads, cacheAge, cacheSize, eventLoopLag, certificateExpiry } = thresholds;

const reads = ['verb=~"get|list"', 'resource!="logs"'];
const changes = ['verb=~"create|update|patch|delete|deletecollection|post|put"'];
const recorded = (metric: string): string => series(`namespace_job:platform_apiserver_${metric}`);
/** Returns a query for the unused fraction of the errors that the objective allows in 30 days. */
const budgetLeft = (bad: string, all: string, allowed: number): string =>
  `1 - sum(sum_over_time(${recorded(bad)}[30d])) / sum(sum_over_time(${recorded(all)}[30d])) / ${allowed}`;

const status: Row = {
  title: 'Status',
  panels: [
    stat(
      {
        title: 'Firing alerts',
        description: 'Alerts of platform-apiserver that fire now. The runbook of each alert names the next steps.',
        unit: 'short',
      },
      'count(ALERTS{alertname=~"PlatformApiserver.+", alertstate="firing"}) or vector(0)',
      ['green', [1, 'red']],
    ),
    stat(
      { title: 'Replicas', description: 'Replicas whose metrics Prometheus can read.', unit: 'short' },
      `sum(${series('up')})`,
      ['red', [1, 'orange'], [2, 'green']],
    ),
    stat(
      {
        title: 'Failed requests',
        description: `Fraction of the users' requests of the last five minutes with a 5xx status, except forwarded requests and log queries. The objective allows ${percent(errors)}.`,
        unit: 'percentunit',
      },
      `max(${recorded('request_errors:ratio_rate5m')})`,
      ['green', [errors, 'orange'], [6 * errors, 'red']],
    ),
    stat(
      {
        title: 'Error budget left',
        description: 'Unused fraction of the failed requests that the objective allows in 30 days.',
        unit: 'percentunit',
      },
      budgetLeft('request_errors:rate5m', 'requests:rate5m', errors),
      ['red', [0, 'orange'], [0.25, 'green']],
    ),
    stat(
      {
        title: 'Latency budget left',
        description: 'Unused fraction of the slow reads that the objective allows in 30 days.',
        unit: 'percentunit',
      },
      budgetLeft('slow_reads:rate5m', 'reads:rate5m', slowReads),
      ['red', [0, 'orange'], [0.25, 'green']],
    ),
    stat(
      {
        title: 'Certificate expires in',
        description:
          'Time until the serving certificate expires. The certificate should be renewed weeks before it expires.',
        unit: 's',
      },
      `min(${own('serving_certificate_expiry_timestamp_seconds')}) - time()`,
      ['red', [certificateExpiry.critical, 'orange'], [certificateExpiry.warning, 'green']],
    ),
  ],
};

const traffic: Row = {
  title: 'Traffic',
  panels: [
    chart(
      { title: 'Requests by verb', description: 'Completed requests per second, except probes.', unit: 'reqps' },
      { '{{verb}}': sumBy('verb', rate(own('requests_total'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Requests by status',
        description:
          'Completed requests per second by HTTP status. 429 means that a limit applied, 499 that the client disconnected.',
        unit: 'reqps',
      },
      { '{{code}}': sumBy('code', rate(own('requests_total'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Failed requests by resource',
        description:
          'Requests per second with a 5xx status, by the server that responded. No data means that no request has failed.',
        unit: 'reqps',
      },
      {
        '{{code}} {{verb}} {{resource}} ({{backend}})': sumBy(
          'code, verb, resource, backend',
          rate(own('requests_total', 'code=~"5.."')),
        ),
      },
    ),
    chart(
      {
        title: 'Requests in progress',
        description:
          'Requests in progress by kind. Each replica limits each kind, and rejects requests above the limit with 429.',
        unit: 'short',
      },
      { '{{kind}}': sumBy('kind', own('requests_in_flight')) },
      { isStacked: true },
    ),
    chart(
      { title: 'Connections', description: 'Open connections of clients by listener.', unit: 'short' },
      { '{{listener}}': sumBy('listener', own('connections')) },
      { isStacked: true },
    ),
    chart(
      { title: 'Sent bytes', description: 'Bytes per second that the server sends, by listener.', unit: 'binBps' },
      { '{{listener}}': sumBy('listener', rate(own('sent_bytes_total'))) },
      { isStacked: true },
    ),
  ],
};

const latency: Row = {
  title: 'Latency',
  panels: [
    chart(
      {
        title: 'Slow reads',
        description: `Fraction of the users' get and list requests that take longer than one second, except forwarded requests and log queries. The objective allows ${percent(slowReads)}.`,
        unit: 'percentunit',
      },
      { 'slow reads': `max(${recorded('slow_reads:ratio_rate5m')})` },
      { limit: slowReads },
    ),
    chart(
      {
        title: 'Duration of reads',
        description: 'Percentiles of the duration of get and list requests, except log queries and streams.',
        unit: 's',
      },
      percentiles('request_duration_seconds', ...reads),
    ),
    chart(
      {
        title: 'Duration of changes',
        description: 'Percentiles of the duration of requests that change something, including logins.',
        unit: 's',
      },
      percentiles('request_duration_seconds', ...changes),
    ),
    chart(
      {
        title: 'Slowest resources',
        description: '99th percentile of the duration of the five resources with the slowest requests.',
        unit: 's',
      },
      { '{{verb}} {{resource}}': `topk(5, ${quantile(0.99, 'request_duration_seconds', 'verb, resource')})` },
    ),
    chart(
      {
        title: 'Access reviews',
        description:
          'Time that kube-apiserver takes to decide whether a request is allowed. Every request may wait for a review.',
        unit: 's',
      },
      percentiles('access_review_duration_seconds'),
    ),
    chart(
      {
        title: 'Access reviews by result',
        description:
          'Access reviews per second by result, and decisions from the cache. Errors mean that kube-apiserver fails.',
        unit: 'ops',
      },
      {
        '{{result}}': sumBy('result', rate(own('access_review_duration_seconds_count'))),
        cached: `sum(${rate(own('access_review_cache_hits_total'))})`,
      },
      { isStacked: true },
    ),
  ],
};

const logins: Row = {
  title: 'Logins and sessions',
  panels: [
    chart(
      {
        title: 'Logins by outcome',
        description: 'Logins per second. Unavailable means that the server or an identity provider failed.',
        unit: 'ops',
      },
      { '{{outcome}}': sumBy('outcome', rate(own('logins_total'))) },
      { isStacked: true },
    ),
    chart(
      { title: 'Issued tokens', description: 'Access tokens issued per second, by grant.', unit: 'ops' },
      { '{{grant}}': sumBy('grant', rate(own('tokens_issued_total'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Sessions',
        description: 'Sessions in the cache of a replica, including expired sessions that are not deleted yet.',
        unit: 'short',
      },
      { sessions: `max(${own('sessions')})` },
    ),
  ],
};

const gateway: Row = {
  title: 'Gateway',
  panels: [
    chart(
      {
        title: 'Forwarded requests',
        description:
          'Requests per second that the gateway forwards. Errors mean that kube-apiserver closed the connection or was unreachable.',
        unit: 'reqps',
      },
      { '{{result}}': sumBy('result', rate(own('upstream_duration_seconds_count'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Response time of kube-apiserver',
        description: 'Time from forwarding a request to the head of the response.',
        unit: 's',
      },
      percentiles('upstream_duration_seconds', 'result="ok"'),
    ),
    chart(
      {
        title: 'Connections to kube-apiserver',
        description: 'Connections of the gateway. Streams keep a connection busy until they end.',
        unit: 'short',
      },
      { '{{state}}': sumBy('state', own('upstream_connections')) },
      { isStacked: true },
    ),
  ],
};

const cache: Row = {
  title: 'Watches and cache',
  panels: [
    chart(
      {
        title: 'Open watches',
        description:
          'Open watches and streams by replica. A number that only grows means that a client does not close its watches.',
        unit: 'short',
      },
      { '{{pod}}': sumBy('pod', own('open_watches')) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Delay of watch events',
        description: 'Time from the arrival of a change to its last write to an open watch.',
        unit: 's',
      },
      percentiles('watch_fan_out_delay_seconds'),
    ),
    chart(
      {
        title: 'Changes by resource',
        description: 'Changes per second that the server receives, for the ten busiest resources.',
        unit: 'ops',
      },
      { '{{resource}}': `topk(10, ${sumBy('resource', rate(own('watch_events_total')))})` },
    ),
    chart(
      {
        title: 'Age of the cache',
        description: `Longest time since the watch of a cached resource last received data. Above ${cacheAge} s, the cache is stale.`,
        unit: 's',
      },
      { '{{pod}}': `max by (pod) (${own('store_age_seconds')})` },
      { limit: cacheAge },
    ),
    chart(
      {
        title: 'Complete lists',
        description:
          'Lists that the cache reads per second, for the ten resources with the most lists. Many lists mean that watches are interrupted.',
        unit: 'ops',
      },
      { '{{resource}}': `topk(10, ${sumBy('resource', rate(own('cache_lists_total')))})` },
    ),
    chart(
      {
        title: 'Size of the cache',
        description: 'Fraction of cache.maxBytes that the cached resources of a replica use.',
        unit: 'percentunit',
      },
      { '{{pod}}': `${sumBy('pod', own('store_bytes'))} / ${sumBy('pod', own('store_limit_bytes'))}` },
      { limit: cacheSize },
    ),
  ],
};

const logs: Row = {
  title: 'Logs and audit',
  panels: [
    chart(
      {
        title: 'Requests to the log store',
        description: 'Requests per second by operation and result. A 5xx result means that the log store fails.',
        unit: 'reqps',
      },
      { '{{operation}} {{result}}': sumBy('operation, result', rate(own('log_store_duration_seconds_count'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Response time of the log store',
        description: '99th percentile by operation. An export or a tail counts until it ends.',
        unit: 's',
      },
      { '{{operation}}': quantile(0.99, 'log_store_duration_seconds', 'operation') },
    ),
    chart(
      {
        title: 'Audit events',
        description: 'Audit events per second, and lost events by sink. Lost events are missing from the audit log.',
        unit: 'ops',
      },
      {
        events: `sum(${rate(own('audit_events_total'))})`,
        'lost ({{sink}})': sumBy('sink', rate(own('audit_events_dropped_total'))),
      },
    ),
  ],
};

const saturation: Row = {
  title: 'Saturation',
  panels: [
    chart(
      {
        title: 'CPU',
        description:
          'CPU cores that each replica uses. JavaScript runs on one core, password hashes and TLS run on further cores.',
        unit: 'short',
      },
      { '{{pod}}': sumBy('pod', rate(series('process_cpu_seconds_total'))) },
    ),
    chart(
      {
        title: 'Memory',
        description: 'Resident memory and limit of each replica. The kernel kills a replica at its limit.',
        unit: 'bytes',
      },
      {
        '{{pod}}': sumBy('pod', series('process_resident_memory_bytes')),
        'limit {{pod}}': `${sumBy('pod', own('memory_limit_bytes'))} > 0`,
      },
    ),
    chart(
      {
        title: 'Event-loop lag',
        description: `99th percentile of the time that requests wait for the event loop. Above ${eventLoopLag} s, add replicas.`,
        unit: 's',
      },
      { '{{pod}}': `max by (pod) (${series('nodejs_eventloop_lag_p99_seconds')})` },
      { limit: eventLoopLag },
    ),
    chart(
      {
        title: 'Waiting password checks',
        description: 'Password checks that wait for a thread. Logins are slow while the queue is long.',
        unit: 'short',
      },
      { '{{pod}}': sumBy('pod', own('password_hashes_waiting')) },
    ),
    chart(
      {
        title: 'Duration of password checks',
        description:
          'Percentiles, excluding the time in the queue. An increase means that the CPU is overloaded or throttled.',
        unit: 's',
      },
      percentiles('password_hash_duration_seconds'),
    ),
    chart(
      {
        title: 'Garbage collection',
        description: 'Fraction of the time that each replica spends on garbage collection.',
        unit: 'percentunit',
      },
      { '{{pod}}': sumBy('pod', rate(series('nodejs_gc_duration_seconds_sum'))) },
    ),
  ],
};

export const overview = dashboard(
  {
    uid: 'platform-apiserver-overview',
    title: 'platform-apiserver / Overview',
    description: 'State, traffic, latency, dependencies and saturation of platform-apiserver, most important first.',
  },
  [status, traffic, latency, logins, gateway, cache, logs, saturation],
);
