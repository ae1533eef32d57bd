/** The client that the README and the install notes name. */
import { execute } from '../../../hack/cluster/exec.ts';
import { Answer } from './http.ts';
import { rememberAnswer } from './login.ts';

/** Runs curl as a person would, with these arguments. */
export async function curl(...args: readonly string[]): Promise<Answer> {
  const { code, stdout, stderr } = await execute('curl', ['-sS', '--max-time', '60', '-i', ...args]);
  if (code !== 0) throw new Error(`curl ended with ${code}: ${stderr}`);
  const end = stdout.indexOf('\r\n\r\n');
  const [line = '', ...lines] = stdout.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((header) => {
      const at = header.indexOf(':');
      return [header.slice(0, at).toLowerCase(), header.slice(at + 1).trim()];
    }),
  );
  const body = stdout.slice(end + 4);
  rememberAnswer(body);
  return new Answer(Number(line.split(' ')[1]), headers, Buffer.from(body));
}
