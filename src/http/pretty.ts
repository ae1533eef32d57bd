const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openers = new Set([0x7b, 0x5b]);
const closers = new Set([0x7d, 0x5d]);
const newline = Buffer.from('\n');
const indent = '  ';

/** The same JSON, indented by two spaces as Go's json.MarshalIndent does. `text` has no white space between its tokens. */
export function prettyJson(text: Buffer): Buffer {
  const out: Buffer[] = [];
  let depth = 0;
  /** Where what is not yet written begins. */
  let start = 0;
  const breakLine = (end: number): void => {
    out.push(text.subarray(start, end), newline, Buffer.from(indent.repeat(depth)));
    start = end;
  };
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i] as number;
    if (byte === quote) {
      i += 1;
      while (i < text.length && text[i] !== quote) i += text[i] === backslash ? 2 : 1;
    } else if (openers.has(byte)) {
      if (closers.has(text[i + 1] ?? 0)) i += 1;
      else {
        depth += 1;
        breakLine(i + 1);
      }
    } else if (closers.has(byte)) {
      depth -= 1;
      breakLine(i);
    } else if (byte === comma) breakLine(i + 1);
    else if (byte === colon) {
      out.push(text.subarray(start, i + 1), Buffer.from(' '));
      start = i + 1;
    }
  }
  out.push(text.subarray(start));
  return Buffer.concat(out);
}

/**
 * Does the caller want indented JSON: `?pretty=true`, or a program that people read the answers of
 * (k8s.io/apiserver negotiation.isPrettyPrint)?
 */
export function wantsPretty(query: URLSearchParams, userAgent: string | undefined): boolean {
  const asked = query.get('pretty');
  if (asked !== null && asked !== '') return asked === 'true' || asked === '1';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(userAgent ?? '');
}
