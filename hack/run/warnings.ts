/** Prints the warnings and errors among the lines that the server logs. */
export function showWarnings(lines: readonly string[]): void {
  for (const line of lines) show(line);
}

/** Prints a warning or an error, except request lines: the client sees the response. */
function show(line: string): void {
  if (!/"level":"(warn|error)"/.test(line) || line.includes('"message":"request"')) return;
  const { level, message, error, problems } = JSON.parse(line) as Record<string, string> & {
    error?: { message?: string };
    problems?: readonly string[];
  };
  console.error(`server ${level}: ${message}${error?.message === undefined ? '' : `: ${error.message}`}`);
  for (const problem of problems ?? []) console.error(`  ${problem}`);
}
