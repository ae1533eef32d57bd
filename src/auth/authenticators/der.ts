/** Reads as much of DER (ITU-T X.690) as a certificate needs that OpenSSL has parsed before. */

export interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** Returns the elements that stand one after the other. Throws for anything but definite lengths within the bytes. */
export function elementsIn(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes.readUInt8(at);
    const first = bytes.readUInt8(at + 1);
    const octets = first < 0x80 ? 0 : first - 0x80;
    if (first === 0x80) throw new RangeError('an element of indefinite length');
    const length = octets === 0 ? first : bytes.readUIntBE(at + 2, octets);
    const begin = at + 2 + octets;
    at = begin + length;
    if (at > bytes.length) throw new RangeError('an element that goes beyond the end');
    elements.push({ tag, content: bytes.subarray(begin, at) });
  }
  return elements;
}
