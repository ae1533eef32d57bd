/** Encodes the events of a watch: `{"type":…,"object":…}` as a line, a server-sent event or a WebSocket message. */
import type { StatusError } from '../../runtime/errors.ts';
import { textHead } from '../../http/listeners/web-socket-frames.ts';
import type { Change } from '../../cluster/cache/history.ts';
import type { StoredObject } from '../../cluster/cache/stored-object.ts';
import type { FrameType } from '../list/views.ts';

export type Format = 'lines' | 'server-sent events' | 'messages';

export type EventType = FrameType | 'BOOKMARK' | 'ERROR';

const heads: Readonly<Record<EventType, Buffer>> = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
  BOOKMARK: Buffer.from('{"type":"BOOKMARK","object":'),
  ERROR: Buffer.from('{"type":"ERROR","object":'),
};
const tail = Buffer.from('}\n');
/** An empty line ends a server-sent event (HTML, section 9.2.6). */
const eventTail = Buffer.from('}\n\n');

/**
 * Returns one frame in pieces. `id` is the resourceVersion from which a client of server-sent events resumes; without
 * `id`, the client keeps the previous id.
 */
export function frame(format: Format, type: EventType, object: readonly Buffer[], id?: number): Buffer[] {
  if (format !== 'server-sent events') {
    const line = [heads[type], ...object, tail];
    return format === 'lines' ? line : [textHead(line.reduce((sum, { length }) => sum + length, 0)), ...line];
  }
  // An empty id makes the client reconnect without the refused id, and therefore from the start.
  const field = type === 'ERROR' ? 'id:\n' : id === undefined ? '' : `id: ${id}\n`;
  return [Buffer.from(`${field}data: `), heads[type], ...object, eventTail];
}

/** Sets the id from which a client of server-sent events resumes, without an event. */
export const idFrame = (id: number): Buffer => Buffer.from(`id: ${id}\n\n`);

/**
 * Milliseconds of silence after which server-sent events get a comment, so that clients and proxies keep the connection
 * open.
 */
export const keepAliveInterval = 15_000;
/**
 * Returns a keep-alive comment. `id` is the version up to which all changes have been sent; undefined if some are
 * unsent.
 */
export const keepAliveFrame = (id?: number): Buffer =>
  Buffer.from(`: keep-alive\n${id === undefined ? '' : `id: ${id}\n`}\n`);

export const errorFrame = (format: Format, error: StatusError): Buffer[] =>
  frame(format, 'ERROR', [Buffer.from(JSON.stringify(error.toStatus()))]);

/** Returns the event of a change for a watch with these filters; undefined if the watch does not see the change. */
export function visibleEvent<F>(
  { type, object, previous, resourceVersion }: Change<F>,
  passes: (state: StoredObject<F>) => boolean,
): { readonly type: FrameType; readonly object: StoredObject<F> } | undefined {
  const before = previous !== undefined && passes(previous);
  const after = type !== 'DELETED' && passes(object);
  if (after) return { type: before ? 'MODIFIED' : 'ADDED', object };
  if (!before) return undefined;
  return { type: 'DELETED', object: type === 'DELETED' ? object : previous.withResourceVersion(resourceVersion) };
}
