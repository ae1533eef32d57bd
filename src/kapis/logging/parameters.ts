/** The parameters of the log queries, as the descriptions name them. */
import type { Parameter } from '../../http/route.ts';
import { limits, operations } from '../../logs/query.ts';
import { parameter, pretty, timeout } from '../parameters.ts';

const list = (what: string): string => `${what}; a comma list, one of which must hold`;
const seconds = { type: 'integer', minimum: 0 };

export const logParameters: readonly Parameter[] = [
  parameter('operation', 'What is answered', { type: 'string', enum: operations, default: 'query' }),
  parameter('namespaces', list('Namespaces by name')),
  parameter('workloads', list('Deployments, StatefulSets, DaemonSets, Jobs and CronJobs by name')),
  parameter('pods', list('Pods by name')),
  parameter('containers', list('Containers by name')),
  parameter('namespace_query', list('The name of the namespace contains this, in whatever case')),
  parameter('workload_query', list('The name of the workload contains this, in whatever case')),
  parameter('pod_query', list('The name of the pod contains this, in whatever case')),
  parameter('container_query', list('The name of the container contains this, in whatever case')),
  parameter('log_query', list('The text contains this, in whatever case')),
  parameter('start_time', 'Whole seconds since 1970; by default from the beginning', seconds),
  parameter('end_time', 'Whole seconds since 1970; by default now', seconds),
  parameter('interval', 'Of a histogram: a number and one of s, m, h, d, w, M, q, y', {
    type: 'string',
    default: '15m',
  }),
  parameter('sort', 'By time', { type: 'string', enum: ['desc', 'asc'], default: 'desc' }),
  parameter('from', 'Records to leave out at first', { type: 'integer', minimum: 0, default: 0 }),
  parameter('size', 'Records of a page', { type: 'integer', minimum: 0, maximum: limits.size, default: 10 }),
  parameter('follow', 'New records as they come, as lines of JSON or server-sent events', {
    type: 'boolean',
    default: false,
  }),
  pretty,
  timeout,
];
