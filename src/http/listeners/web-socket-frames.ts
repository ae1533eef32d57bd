/** WebSocket frames (RFC 6455 section 5) for a server that sends messages and ignores the messages of the client. */

const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;
const final = 0x80;
const masked = 0x80;
const maxControlPayload = 125;
const maskLength = 4;
/** Maximum bytes of the payload of a client's message. Such messages are ignored. */
const maxPayload = 64 * 1024;

/** RFC 6455 section 7.4.1. */
export const normalClosure = 1000;
const protocolError = 1002;
const tooBig = 1009;
const isCloseCode = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

const nothing = Buffer.alloc(0);

/** Returns the frame header of a text message of `length` bytes. */
export function textHead(length: number): Buffer {
  const first = final | opcodes.text;
  if (length <= maxControlPayload) return Buffer.from([first, length]);
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

/** A frame to send in reply to a frame of the client. No frame is allowed to follow if `isLast` is true. */
export interface Reply {
  readonly frame: Buffer;
  readonly isLast: boolean;
}

/** Parses the frames of a client from chunks of any size. Messages are skipped. */
export class ClientFrames {
  /** The start of an incomplete frame header or control frame. */
  #incomplete = nothing;
  /** Bytes of the current message that have not arrived. */
  #toSkip = 0;
  #isInMessage = false;
  #isOver = false;

  /** Returns a pong for each ping. A close frame or an invalid frame gets a close frame as the last reply. */
  replies(chunk: Buffer): Reply[] {
    const replies: Reply[] = [];
    let bytes = this.#incomplete.length === 0 ? chunk : Buffer.concat([this.#incomplete, chunk]);
    while (!this.#isOver) {
      const skipped = Math.min(this.#toSkip, bytes.length);
      this.#toSkip -= skipped;
      bytes = bytes.subarray(skipped);
      const read = this.#readFrame(bytes, replies);
      if (read === 0) break;
      bytes = bytes.subarray(read);
    }
    // The bytes are copied, because a slice would keep the whole chunk in memory.
    this.#incomplete = this.#isOver ? nothing : Buffer.from(bytes);
    return replies;
  }

  /**
   * Reads the next control frame or the header of a message frame. Returns the number of bytes read; 0 if the frame
   * header or control frame is incomplete.
   */
  #readFrame(bytes: Buffer, replies: Reply[]): number {
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
    const isExpected = isControl
      ? isFinal && opcode <= opcodes.pong
      : opcode === opcodes.continuation
        ? this.#isInMessage
        : opcode <= opcodes.binary && !this.#isInMessage;
    const hasReserved = (first & 0x70) !== 0;
    const short = second & 0x7f;
    if (!isExpected || hasReserved || (second & masked) === 0 || (isControl && short > maxControlPayload))
      return last(protocolError);
    const lengthAt = short === 126 ? 2 : short === 127 ? 8 : 0;
    const head = 2 + lengthAt + maskLength;
    if (bytes.length < head) return 0;
    const length = lengthAt === 0 ? short : lengthAt === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (!isControl) {
      if (length > maxPayload) return last(tooBig);
      this.#isInMessage = !isFinal;
      this.#toSkip = length;
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
