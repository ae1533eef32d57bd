/** Runs curl, which the README and the install notes use. */
import { execute } from '../../../hack/cluster/exec.ts';
import { HttpResponse } from './http.ts';
import { rememberResponse } from './login.ts';

/** Runs curl with these arguments. */
export async function curl(...args: readonly string[]): Promise<HttpResponse> {
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
  rememberResponse(body);
  return new HttpResponse(Number(line.split(' ')[1]), headers, Buffer.from(body));
}
