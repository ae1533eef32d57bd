/** The frames of a WebSocket (RFC 6455 section 5), as far as a server needs them that tells and does not listen. */

const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;
const final = 0x80;
const masked = 0x80;
const mostOfControl = 125;
const maskLength = 4;
/** What nobody listens to may not be long either. */
const longestFrame = 64 * 1024;

/** RFC 6455 section 7.4.1. */
export const normalClosure = 1000;
const protocolError = 1002;
const tooBig = 1009;
const isCloseCode = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

const nothing = Buffer.alloc(0);

/** The head of a text message of so many bytes, in one frame. */
export function textHead(length: number): Buffer {
  const first = final | opcodes.text;
  if (length <= mostOfControl) return Buffer.from([first, length]);
  if (length <= 0xffff) return Buffer.from([first, 126, length >>> 8, length & 0xff]);
  const head = Buffer.alloc(10);
  head[0] = first;
  head[1] = 127;
  head.writeUIntBE(length, 4, 6);
  return head;
}

const control = (opcode: number, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from([final | opcode, payload.length]), payload]);

export const closing = (code: number): Buffer => control(opcodes.close, Buffer.from([code >>> 8, code & 0xff]));

/** What is to be sent in answer to a frame; `isLast`: nothing more after it. */
export interface Reply {
  readonly frame: Buffer;
  readonly isLast: boolean;
}

/** Reads what a client sends, in whatever pieces it comes. Of its messages nothing is kept. */
export class ClientFrames {
  /** The beginning of a frame: less than the longest head, or than the longest control frame. */
  #held = nothing;
  /** So much of a message is yet to come. */
  #rest = 0;
  #isInMessage = false;
  #isOver = false;

  /** A pong for each ping; the answer to a close; a close for what is no frame of a client, and then nothing more. */
  replies(chunk: Buffer): Reply[] {
    const replies: Reply[] = [];
    let bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    while (!this.#isOver) {
      const passed = Math.min(this.#rest, bytes.length);
      this.#rest -= passed;
      bytes = bytes.subarray(passed);
      const taken = this.#take(bytes, replies);
      if (taken === 0) break;
      bytes = bytes.subarray(taken);
    }
    // Not a part of a chunk that is much longer.
    this.#held = this.#isOver ? nothing : Buffer.from(bytes);
    return replies;
  }

  /** The next frame, of a message its head; answers how many bytes that was, 0 if it is not all there. */
  #take(bytes: Buffer, replies: Reply[]): number {
    const [first, second] = bytes;
    if (first === undefined || second === undefined) return 0;
    const opcode = first & 0x0f;
    const isFinal = (first & final) !== 0;
    const isControl = opcode >= opcodes.close;
    const last = (code: number): number => {
      this.#isOver = true;
      replies.push({ frame: closing(code), isLast: true });
      return bytes.length;
    };
    const mayCome = isControl
      ? isFinal && opcode <= opcodes.pong
      : opcode === opcodes.continuation
        ? this.#isInMessage
        : opcode <= opcodes.binary && !this.#isInMessage;
    const hasReserved = (first & 0x70) !== 0;
    const short = second & 0x7f;
    if (!mayCome || hasReserved || (second & masked) === 0 || (isControl && short > mostOfControl))
      return last(protocolError);
    const lengthAt = short === 126 ? 2 : short === 127 ? 8 : 0;
    const head = 2 + lengthAt + maskLength;
    if (bytes.length < head) return 0;
    const length = lengthAt === 0 ? short : lengthAt === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (!isControl) {
      if (length > longestFrame) return last(tooBig);
      this.#isInMessage = !isFinal;
      this.#rest = length;
      return head;
    }
    if (bytes.length < head + length) return 0;
    const mask = bytes.subarray(head - maskLength, head);
    const payload = Buffer.from(bytes.subarray(head, head + length).map((byte, at) => byte ^ (mask[at % 4] as number)));
    if (opcode === opcodes.ping) replies.push({ frame: control(opcodes.pong, payload), isLast: false });
    if (opcode !== opcodes.close) return head + length;
    if (length === 0) return last(normalClosure);
    const code = length === 1 ? 0 : payload.readUInt16BE(0);
    return last(isCloseCode(code) ? code : protocolError);
  }
}
