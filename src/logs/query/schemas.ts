/** What the log queries answer. */
import { partialSchema as partial } from '../../http/meta.ts';
import { count, described, eitherOf, list, named, object, text, time } from '../../http/schema.ts';

/** On the aggregated face what is answered is an object of Kubernetes. */
const head = {
  kind: described('LogQuery; of what is asked through kube-apiserver', text),
  apiVersion: described('The group and its version; of what is asked through kube-apiserver', text),
};

const recordSchema = named(
  'LogRecord',
  object({
    time: described('With nine digits of a second, in UTC', time),
    namespace: described('Of the pod', text),
    pod: described('Its name', text),
    container: described('Its name', text),
    log: described('A line, without its end', text),
  }),
);

const query = named(
  'LogRecords',
  described(
    'Of operation=query: the records of a page',
    object(
      { total: described('Of all pages', count), records: described('In the order of time', list(recordSchema)) },
      { partial },
    ),
  ),
);
const statistics = named(
  'LogStatistics',
  described(
    'Of operation=statistics: how much there is',
    object({ containers: described('Different ones', count), logs: described('Records', count) }, { partial }),
  ),
);
const bucket = named(
  'LogHistogramBucket',
  object({
    time: described('Where the bucket begins, in milliseconds since 1970', count),
    count: described('Records in it', count),
  }),
);
const histogram = named(
  'LogHistogram',
  described(
    'Of operation=histogram: how many there are when',
    object(
      { total: described('Of all buckets', count), histograms: described('The buckets', list(bucket)) },
      { partial },
    ),
  ),
);

export const logsSchema = named(
  'LogQuery',
  described(
    'LogQuery is what was found in the logs of containers. It is not stored: it answers a GET with parameters, which are described at /swagger/platform.json.',
    eitherOf(
      named('LogQueryRecords', object({ query }, head)),
      named('LogQueryStatistics', object({ statistics }, head)),
      named('LogQueryHistogram', object({ histogram }, head)),
    ),
  ),
);
