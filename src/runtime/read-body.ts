/** A body as a whole. `tooLarge` makes what is thrown as soon as there are more than `most` bytes of it. */
export async function readBody(
  body: AsyncIterable<unknown>,
  most = Infinity,
  tooLarge: () => Error = () => new RangeError(`a body has more than ${most} bytes`),
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Buffer).length;
    if (size > most) throw tooLarge();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
