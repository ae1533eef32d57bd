import { chosen, freePort, isFree } from '../cluster/chosen.ts';

type Variable = 'HTTP_PORT' | 'HTTPS_PORT' | 'AGGREGATED_PORT';

/** The port that the variable asks for; undefined if it asks for none. Throws for what is no port. */
function asked(variable: Variable): number | undefined {
  const text = process.env[variable] ?? '';
  if (text === '') return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new Error(`${variable} must be a port from 1 to 65535, not ${text}`);
  return port;
}

/** Throws for a variable that is no port, before anything that takes long. */
export function checkPorts(): void {
  for (const variable of ['HTTP_PORT', 'HTTPS_PORT', 'AGGREGATED_PORT'] as const) asked(variable);
}

/** The port that the variable asks for, which must be free; else the first free one from `usual` on. */
async function choose(
  variable: Variable,
  usual: number,
  address: string,
  taken: readonly number[] = [],
): Promise<number> {
  const wanted = asked(variable);
  if (wanted === undefined) {
    const port = await freePort(usual, address, taken);
    if (port !== usual) console.log(`port ${usual} is taken: ${variable} is ${port}`);
    return port;
  }
  if (!(await isFree(wanted, address)))
    throw new Error(`${variable}=${wanted} is taken; without it a free port is chosen`);
  return wanted;
}

/** The HTTPS port is part of the issuer's name and of kubeconfigs, so it is kept for the next run. */
export async function serverPorts(
  dir: string,
  address: string,
): Promise<{ http: number; https: number; aggregated: number }> {
  const local = '127.0.0.1';
  const http = await choose('HTTP_PORT', 9090, local);
  const https = await chosen(dir, 'https', (before) => choose('HTTPS_PORT', before ?? 9443, local, [http]));
  const aggregated = await choose('AGGREGATED_PORT', 10_250, address);
  return { http, https, aggregated };
}
