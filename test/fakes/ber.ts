/** Messages of an LDAP server (RFC 4511). */

/** Encodes an element in BER (X.690). The contents must have less than 64 KiB. */
export const ber = (tag: number, ...contents: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
};
export const integer = (value: number): Buffer => Buffer.from([2, 1, value]);
export const text = (value: string): Buffer => ber(4, Buffer.from(value));
/** RFC 4511 section 4.1.9. */
export const done = (id: number, tag: number, result = 0): Buffer =>
  ber(0x30, integer(id), ber(tag, Buffer.from([0x0a, 1, result]), text(''), text('')));
