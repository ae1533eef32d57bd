/** The parameters of the log queries, as the descriptions name them. */
import { inQuery, type ParameterDescription } from '../../http/route.ts';
import { count, flag, oneOf, text } from '../../http/schema.ts';
import { limits, operations } from './query.ts';
import { pretty, timeout } from '../../apimachinery/list/parameters.ts';

const list = (what: string): string => `${what}; a comma list, one of which must hold`;

export const logParameters: readonly ParameterDescription[] = [
  inQuery('operation', 'What is answered', oneOf(...operations).default('query')),
  inQuery('namespaces', list('Namespaces by name')),
  inQuery('workloads', list('Deployments, StatefulSets, DaemonSets, Jobs and CronJobs by name')),
  inQuery('pods', list('Pods by name')),
  inQuery('containers', list('Containers by name')),
  inQuery('namespace_query', list('The name of the namespace contains this, in whatever case')),
  inQuery('workload_query', list('The name of the workload contains this, in whatever case')),
  inQuery('pod_query', list('The name of the pod contains this, in whatever case')),
  inQuery('container_query', list('The name of the container contains this, in whatever case')),
  inQuery('log_query', list('The text contains this, in whatever case')),
  inQuery(
    'start_time',
    'Whole seconds since 1970; by default from the beginning, of the store pods the last hour',
    count,
  ),
  inQuery('end_time', 'Whole seconds since 1970; by default now', count),
  inQuery(
    'interval',
    'Of a histogram, at most 10,000 buckets: a number and s, m, h or d, or one w, M, q or y',
    text.default('15m'),
  ),
  inQuery('sort', 'By time', oneOf('desc', 'asc').default('desc')),
  inQuery(
    'from',
    'Records of a query to leave out at first; with size no more than 100,000',
    count.max(limits.reach).default(0),
  ),
  inQuery('size', 'Records of a page of a query; an export has all', count.max(limits.size).default(10)),
  inQuery(
    'follow',
    'New records as they come, as lines of JSON or server-sent events; without times, interval, sort, from and size',
    flag.default(false),
  ),
  pretty,
  timeout,
];
