import { readFile } from 'node:fs/promises';
import { formatProblem, parseConfiguration } from '../config/parse.ts';

/** Says everything that is wrong with a configuration file. Returns the exit code: 0 valid, 1 invalid, 2 unreadable. */
export async function checkConfig(file: string | undefined): Promise<number> {
  if (file === undefined) {
    console.error('usage: platform-apiserver check-config FILE');
    return 2;
  }
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    console.error(`check-config: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }
  const parsed = parseConfiguration(text);
  if (parsed.ok) {
    console.log(`${file} is valid`);
    return 0;
  }
  for (const problem of parsed.problems) console.error(`${file}: ${formatProblem(problem)}`);
  return 1;
}
