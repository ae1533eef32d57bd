/** Requests with curl, wherever a command can be run. */
import { execute, type Executed } from '../../hack/cluster/exec.ts';

export interface CurlResponse {
  readonly status: number;
  readonly body: string;
}

export interface Request {
  readonly token?: string;
  /** Fields posted as application/x-www-form-urlencoded. */
  readonly form?: Readonly<Record<string, string>>;
  /** CA in PEM, the only trusted one. */
  readonly authority?: string;
  /** host:port to connect to instead of the host and port in the URL. */
  readonly connectTo?: string;
}

export interface Client {
  /** Throws if no response arrives within ten seconds. */
  request(url: string, request?: Request): Promise<CurlResponse>;
  /** Runs a shell script. Throws if it fails. */
  shell(script: string): Promise<string>;
}

/** `prefix` is a command that runs the command in its arguments, for example in a pod. */
export function curl(prefix: readonly string[]): Client {
  const run = (args: readonly string[], input = ''): Promise<Executed> => {
    const [program = '', ...rest] = [...prefix, ...args];
    return execute(program, rest, { input, timeout: 30_000 });
  };
  return {
    async request(url, { token, form, authority, connectTo } = {}) {
      const flags = [
        '-sS',
        '-m10',
        '-w\n%{http_code}',
        ...(token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`]),
        ...Object.entries(form ?? {}).flatMap(([name, value]) => ['--data-urlencode', `${name}=${value}`]),
        ...(authority === undefined ? [] : ['--cacert', '/dev/stdin']),
        ...(connectTo === undefined ? [] : ['--connect-to', `::${connectTo}`]),
      ];
      // Standard input is a socket, which cannot be opened as /dev/stdin. The output of cat is a pipe, which can.
      const { code, stdout, stderr } = await run(['sh', '-c', 'cat | curl "$@"', 'sh', ...flags, url], authority);
      if (code !== 0) throw new Error(`${url}: ${stderr.trim()}`);
      const end = stdout.lastIndexOf('\n');
      return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) };
    },
    async shell(script) {
      const { code, stdout, stderr } = await run(['sh', '-c', script]);
      if (code !== 0) throw new Error(`${script} failed (${code}): ${stderr.trim()}`);
      return stdout;
    },
  };
}
