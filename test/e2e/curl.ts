/** Requests by curl, wherever a command can be run. */
import { execute, type Executed } from '../../hack/cluster/exec.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export interface Request {
  readonly token?: string;
  /** Posted as application/x-www-form-urlencoded. */
  readonly form?: Readonly<Record<string, string>>;
  /** An authority in PEM, the only one that counts. */
  readonly authority?: string;
  /** Where to connect instead of where the URL says: host:port. */
  readonly connectTo?: string;
}

export interface Client {
  /** Throws if there is no answer within ten seconds. */
  request(url: string, request?: Request): Promise<Answer>;
  /** Runs a shell script there. Throws if it fails. */
  shell(script: string): Promise<string>;
  /** Runs a shell script there that does not end by itself, for two minutes at most, and answers what it printed. */
  untilKilled(script: string): Promise<string>;
}

/** `prefix`: the command that runs a command there. */
export function curl(prefix: readonly string[]): Client {
  const run = (args: readonly string[], input = '', timeout = 30_000): Promise<Executed> => {
    const [program = '', ...rest] = [...prefix, ...args];
    return execute(program, rest, { input, timeout });
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
      // Through cat, because a pipe has a name in /dev, and what we write to is a socket.
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
    untilKilled: async (script) => (await run(['sh', '-c', script], '', 120_000)).stdout,
  };
}
