/** What the log queries answer. */
import { count, described, eitherOf, list, named, object, text, time } from '../../http/schema.ts';

/** On the aggregated face what is answered is an object of Kubernetes. */
const head = { kind: text, apiVersion: text };
const partial = described('A cap cut the result short', object({ reason: described('Which, for people', text) }));

const recordSchema = named(
  'LogRecord',
  object({
    time: described('With nine digits of a second, in UTC', time),
    namespace: text,
    pod: text,
    container: text,
    log: described('A line, without its end', text),
  }),
);

const query = object({ total: described('Of all pages', count), records: list(recordSchema) }, { partial });
const statistics = object({ containers: described('Different ones', count), logs: count }, { partial });
const histogram = object(
  {
    total: count,
    histograms: list(object({ time: described('Where the bucket begins, in milliseconds since 1970', count), count })),
  },
  { partial },
);

export const logsSchema = named(
  'LogQuery',
  eitherOf(object({ query }, head), object({ statistics }, head), object({ histogram }, head)),
);
