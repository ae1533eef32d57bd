import { chosen, freePort, isFree } from '../cluster/chosen.ts';

/** The port that the variable asks for, which must be free; else the first free one from `usual` on. */
async function choose(variable: string, usual: number, address: string, taken: readonly number[]): Promise<number> {
  const text = process.env[variable] ?? '';
  if (text === '') return freePort(usual, address, taken);
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) throw new Error(`${variable} is a port, not ${text}`);
  if (!(await isFree(port, address))) throw new Error(`${variable}=${text} is taken; without it a free port is chosen`);
  return port;
}

/** The HTTPS port is part of the issuer's name and of kubeconfigs, so it is kept for the next run. */
export async function serverPorts(
  dir: string,
  address: string,
): Promise<{ http: number; https: number; aggregated: number }> {
  const local = '127.0.0.1';
  const http = await choose('HTTP_PORT', 9090, local, []);
  const https = await chosen(dir, 'https', (before) => choose('HTTPS_PORT', before ?? 9443, local, [http]));
  const aggregated = await choose('AGGREGATED_PORT', 10_250, address, []);
  return { http, https, aggregated };
}
