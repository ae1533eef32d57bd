/** Responses of log queries. */
import { partialSchema as partial } from '../../http/meta-schemas.ts';
import { count, described, eitherOf, list, named, object, text, time } from '../../http/schema.ts';

/** Properties of a Kubernetes object. Only responses through kube-apiserver contain these properties. */
const head = {
  kind: described('`LogQuery`, in responses through kube-apiserver', text),
  apiVersion: described('Group and version, in responses through kube-apiserver', text),
};

const recordSchema = named(
  'LogRecord',
  object({
    time: described('Time in UTC, with nanoseconds', time),
    namespace: described('Namespace of the pod', text),
    pod: described('Name of the pod', text),
    container: described('Name of the container', text),
    log: described('Line without its line break', text),
  }),
);

const query = named(
  'LogRecords',
  described(
    'Result of `operation=query`: a page of records',
    object(
      {
        total: described('Number of records on all pages', count),
        records: described('Records sorted by time', list(recordSchema)),
      },
      { partial },
    ),
  ),
);
const statistics = named(
  'LogStatistics',
  described(
    'Result of `operation=statistics`',
    object(
      {
        containers: described('Number of distinct containers', count),
        logs: described('Number of records', count),
      },
      { partial },
    ),
  ),
);
const bucket = named(
  'LogHistogramBucket',
  object({
    time: described('Start of the bucket in milliseconds since 1970', count),
    count: described('Number of records in the bucket', count),
  }),
);
const histogram = named(
  'LogHistogram',
  described(
    'Result of `operation=histogram`: the number of records per interval',
    object(
      {
        total: described('Number of records in all buckets', count),
        histograms: described('Buckets sorted by time', list(bucket)),
      },
      { partial },
    ),
  ),
);

export const logsSchema = named(
  'LogQuery',
  described(
    'LogQuery is the result of a query of container logs. Results are not stored: a GET request with parameters returns a new result. /swagger/platform.json describes the parameters.',
    eitherOf(
      named('LogQueryRecords', object({ query }, head)),
      named('LogQueryStatistics', object({ statistics }, head)),
      named('LogQueryHistogram', object({ histogram }, head)),
    ),
  ),
);
