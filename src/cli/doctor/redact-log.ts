/** Removes secrets from a log of the server, for the support bundle. */
import { redactText } from '../../runtime/redaction.ts';

/**
 * Returns the log without the bodies of requests and responses that audit events of the levels Request and
 * RequestResponse contain. Omits incomplete JSON, because it may be the rest of such an event.
 */
export const redactLog = (log: string): string => log.split('\n').map(redactLine).join('\n');

function redactLine(line: string): string {
  if (!line.startsWith('{') && !line.endsWith('}')) return redactText(line);
  let entry: Readonly<Record<string, unknown>>;
  try {
    entry = JSON.parse(line) as typeof entry;
  } catch {
    return '[incomplete line]';
  }
  if (entry['kind'] !== 'Event') return redactText(line);
  const { requestObject: _, responseObject: __, ...event } = entry;
  return redactText(JSON.stringify(event));
}
