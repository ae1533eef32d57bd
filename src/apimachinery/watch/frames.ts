/** What a watch says, in bytes: `{"type":…,"object":…}` and a line end, or the same as a server-sent event or a WebSocket's message. */
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
/** HTML, section 9.2.6: an empty line ends an event. The line end of the frame is the first of two. */
const eventTail = Buffer.from('}\n\n');

/**
 * One frame, in pieces. `id`: the resourceVersion to go on from, which a server-sent event carries; without one its client keeps
 * the one before.
 */
export function frame(format: Format, type: EventType, object: readonly Buffer[], id?: number): Buffer[] {
  if (format !== 'server-sent events') {
    const line = [heads[type], ...object, tail];
    return format === 'lines' ? line : [textHead(line.reduce((sum, { length }) => sum + length, 0)), ...line];
  }
  // After an error its client comes again without an id, from the beginning, and not with one that was refused.
  const field = type === 'ERROR' ? 'id:\n' : id === undefined ? '' : `id: ${id}\n`;
  return [Buffer.from(`${field}data: `), heads[type], ...object, eventTail];
}

/** Of server-sent events: no event, but an id to go on from. */
export const idFrame = (id: number): Buffer => Buffer.from(`id: ${id}\n\n`);

/** Milliseconds of silence after which a client of server-sent events, and what is between, is told that nobody has gone. */
export const keepAliveInterval = 15_000;
/** A comment, and the id if everything up to it is told. */
export const keepAliveFrame = (id?: number): Buffer =>
  Buffer.from(`: keep-alive\n${id === undefined ? '' : `id: ${id}\n`}\n`);

export const errorFrame = (format: Format, error: StatusError): Buffer[] =>
  frame(format, 'ERROR', [Buffer.from(JSON.stringify(error.toStatus()))]);

/** What a change is to a watch that sees only what its filters let through: undefined if nothing. */
export function seen<F>(
  { type, object, previous, resourceVersion }: Change<F>,
  passes: (state: StoredObject<F>) => boolean,
): { readonly type: FrameType; readonly object: StoredObject<F> } | undefined {
  const before = previous !== undefined && passes(previous);
  const after = type !== 'DELETED' && passes(object);
  if (after) return { type: before ? 'MODIFIED' : 'ADDED', object };
  if (!before) return undefined;
  return { type: 'DELETED', object: type === 'DELETED' ? object : previous.withResourceVersion(resourceVersion) };
}
