import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Asks for a line at the terminal and shows nothing of what is typed. Empty after Ctrl-C and Ctrl-D; more than one line if more came at once. */
export async function askSecretly(question: string, input: Input): Promise<string> {
  const lines: string[] = [];
  // Without an output readline shows nothing.
  const reader = createInterface({ input, terminal: true, historySize: 0 });
  // Not before the terminal has stopped to show what is typed: some answer at once.
  process.stderr.write(question);
  // Lines that were pasted come at once: they are more than one, not the first and some lost ones.
  reader.on('line', (line) => {
    lines.push(line);
    setImmediate(() => reader.close());
  });
  await once(reader, 'close');
  process.stderr.write('\n');
  return lines.join('\n');
}
