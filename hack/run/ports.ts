import { chooseOnce, freePort, isFree } from '../cluster/chosen.ts';

type Variable = 'HTTP_PORT' | 'HTTPS_PORT' | 'AGGREGATED_PORT';

/** Returns the port in the variable, or undefined if it is not set. Throws if the value is not a port. */
function portFrom(variable: Variable): number | undefined {
  const text = process.env[variable] ?? '';
  if (text === '') return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new Error(`${variable}: expected a port from 1 to 65535, got ${JSON.stringify(text)}`);
  return port;
}

/** Validates the port variables before the slow steps. Throws if the value of a variable is not a port. */
export function checkPorts(): void {
  for (const variable of ['HTTP_PORT', 'HTTPS_PORT', 'AGGREGATED_PORT'] as const) portFrom(variable);
}

/** Returns the port in the variable, which must be free, or else the first free port from `usual` upwards. */
async function choose(
  variable: Variable,
  usual: number,
  address: string,
  taken: readonly number[] = [],
): Promise<number> {
  const wanted = portFrom(variable);
  if (wanted === undefined) {
    const port = await freePort(usual, address, taken);
    if (port !== usual) console.log(`port ${usual} is in use; ${variable} is ${port}`);
    return port;
  }
  if (!(await isFree(wanted, address)))
    throw new Error(`${variable}: port ${wanted} is in use; without ${variable} a free port is chosen`);
  return wanted;
}

/** Chooses the server's ports. The HTTPS port is kept for the next run: the issuer's URL and kubeconfigs contain it. */
export async function serverPorts(
  dir: string,
  address: string,
): Promise<{ http: number; https: number; aggregated: number }> {
  const local = '127.0.0.1';
  const http = await choose('HTTP_PORT', 9090, local);
  const https = await chooseOnce(dir, 'https', (before) => choose('HTTPS_PORT', before ?? 9443, local, [http]));
  const aggregated = await choose('AGGREGATED_PORT', 10_250, address);
  return { http, https, aggregated };
}
