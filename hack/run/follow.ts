import { open } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';

const interval = 50;
const max = 65_536;

/**
 * Passes the existing and future lines of a file to `take`, in order. Returns a function that stops following the file.
 */
export function follow(file: string, take: (lines: readonly string[]) => void | Promise<void>): () => void {
  const decoder = new StringDecoder('utf8');
  const buffer = Buffer.alloc(max);
  let position = 0;
  let rest = '';
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const read = async (): Promise<void> => {
    const handle = await open(file);
    try {
      for (let length = max; length === max;) {
        ({ bytesRead: length } = await handle.read({ position, buffer }));
        position += length;
        const lines = (rest + decoder.write(buffer.subarray(0, length))).split('\n');
        rest = lines.pop() ?? '';
        if (lines.length > 0) await take(lines);
      }
    } finally {
      await handle.close();
    }
  };
  const again = async (): Promise<void> => {
    await read().catch(() => undefined);
    if (!isStopped) timer = setTimeout(() => void again(), interval);
  };
  void again();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
