import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  ClientFrames,
  closing,
  normalClosure,
  textHead,
  type Reply,
} from '../../../../src/http/listeners/web-socket-frames.ts';
import { clientFrame, framesIn } from '../../../fakes/web-socket.ts';

test.each([0, 1, 125, 126, 65_535, 65_536, 20_000_000])(
  'textHead() returns the frame header for a WebSocket message of %i bytes',
  (length) => {
    const [frame, ...more] = framesIn(Buffer.concat([textHead(length), Buffer.alloc(length)]));
    expect([frame?.opcode, frame?.payload.length, more]).toEqual([1, length, []]);
  },
);

/** Returns all replies as readable text. */
const describeReplies = (replies: readonly Reply[]): string[] =>
  replies.flatMap(({ frame, isLast }) =>
    framesIn(frame).map(({ opcode, payload }) => {
      expect(isLast).toBe(opcode === 8);
      return opcode === 8 ? `close ${payload.readUInt16BE(0)}` : `${opcode} ${payload.toString()}`;
    }),
  );

const mask = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => Buffer.from(bytes));
const ping = fc.record({ text: fc.string({ maxLength: 30 }), mask }).map((one) => ({
  bytes: clientFrame(0x89, Buffer.from(one.text), one.mask),
  reply: [`10 ${one.text}`],
}));
const pong = mask.map((with_) => ({ bytes: clientFrame(0x8a, Buffer.from('x'), with_), reply: [] as string[] }));
/** Generates a message in one or several frames, with a ping between frames. */
const message = fc
  .record({
    lengths: fc.array(
      fc.nat(70_000).map((n) => (n > 65_500 ? 65_536 : n)),
      { minLength: 1, maxLength: 4 },
    ),
    ping,
  })
  .map(({ lengths, ping: between }) => ({
    bytes: Buffer.concat(
      lengths.map((length, at) => {
        const isFinal = at === lengths.length - 1;
        const frame = clientFrame((isFinal ? 0x80 : 0) | (at === 0 ? 1 : 0), Buffer.alloc(length, 'y'));
        return isFinal ? frame : Buffer.concat([frame, between.bytes]);
      }),
    ),
    reply: lengths.slice(1).flatMap(() => between.reply),
  }));

test('WebSocket messages of a client are parsed to the same result, however the received bytes are split', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(ping, pong, message), { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 20 }),
      (clientMessages, sizes) => {
        const bytes = Buffer.concat([
          ...clientMessages.map((one) => one.bytes),
          clientFrame(0x88, Buffer.from([3, 233])),
        ]);
        const frames = new ClientFrames();
        const replies: Reply[] = [];
        for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
          const size = sizes[piece % sizes.length] as number;
          replies.push(...frames.replies(bytes.subarray(at, at + size)));
          at += size;
        }
        expect(describeReplies(replies)).toEqual([...clientMessages.flatMap(({ reply }) => reply), 'close 1001']);
      },
    ),
  );
});

test('no input makes the WebSocket parser throw, or send anything after a close frame', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (chunks) => {
      const frames = new ClientFrames();
      const replies = chunks.flatMap((chunk) => frames.replies(Buffer.from(chunk)));
      expect(replies.slice(0, -1).every(({ isLast }) => !isLast)).toBe(true);
    }),
  );
});

describe('an invalid WebSocket frame', () => {
  const x = Buffer.from('x');
  test.each<[string, Buffer, number]>([
    ['a frame without a mask', Buffer.from([0x81, 1, 0x78]), 1002],
    ['a frame with a reserved bit', clientFrame(0xc1, x), 1002],
    ['a frame with an unknown opcode', clientFrame(0x83, x), 1002],
    ['a frame with an unknown control opcode', clientFrame(0x8b, x), 1002],
    ['a fragmented ping', clientFrame(0x09, x), 1002],
    ['a ping of more than 125 bytes', clientFrame(0x89, Buffer.alloc(126)), 1002],
    ['a continuation without a message', clientFrame(0x80, x), 1002],
    ['a new message inside a fragmented message', Buffer.concat([clientFrame(0x01, x), clientFrame(0x81, x)]), 1002],
    ['a close with a truncated code', clientFrame(0x88, x), 1002],
    ['a close with a reserved code', clientFrame(0x88, Buffer.from([3, 237])), 1002],
    ['an oversized message', clientFrame(0x81, Buffer.alloc(65_537)), 1009],
    ['a length field with the maximum value', Buffer.concat([Buffer.from([0x81, 0xff]), Buffer.alloc(12, 0xff)]), 1009],
  ])('an invalid WebSocket frame closes the connection: %s', (_, bytes, code) => {
    const frames = new ClientFrames();
    expect(describeReplies(frames.replies(bytes))).toEqual([`close ${code}`]);
    expect(frames.replies(clientFrame(0x89, x))).toEqual([]);
  });
});

test('the reply to a WebSocket close frame without a code is a close frame with the code of a normal closure', () => {
  expect(new ClientFrames().replies(clientFrame(0x88, Buffer.alloc(0)))).toEqual([
    { frame: closing(normalClosure), isLast: true },
  ]);
});
