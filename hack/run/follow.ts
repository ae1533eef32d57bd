import { open } from 'node:fs/promises';

/** Shows the warnings and errors that the server logs, as they come, until told to stop. */
export function showWarnings(log: string): () => void {
  let position = 0;
  let rest = '';
  const read = async (): Promise<void> => {
    const file = await open(log);
    try {
      const { buffer, bytesRead } = await file.read({ position, buffer: Buffer.alloc(65_536) });
      position += bytesRead;
      const lines = (rest + buffer.toString('utf8', 0, bytesRead)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) show(line);
    } finally {
      await file.close();
    }
  };
  const timer = setInterval(() => void read().catch(() => undefined), 500);
  return () => clearInterval(timer);
}

/** Requests are left to the log: whoever sent one sees the answer. */
function show(line: string): void {
  if (!/"level":"(warn|error)"/.test(line) || line.includes('"message":"request"')) return;
  const { level, message, error, problems } = JSON.parse(line) as Record<string, string> & {
    error?: { message?: string };
    problems?: readonly string[];
  };
  console.error(`server ${level}: ${message}${error?.message === undefined ? '' : `: ${error.message}`}`);
  for (const problem of problems ?? []) console.error(`  ${problem}`);
}
