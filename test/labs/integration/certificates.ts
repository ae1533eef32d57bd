/** Client certificates: what the aggregator shows, and what others could show in its place. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, loadAuthority, type Authority, type Pair } from '../../../hack/cluster/pki.ts';
import { lab } from './lab.ts';

function pair(name: string): Pair {
  const read = (suffix: string): string => readFileSync(join(lab().dir, 'pki', `${name}.${suffix}`), 'utf8');
  return { certificate: read('crt'), key: read('key') };
}

/** kube-apiserver's own, as an aggregator. */
export const aggregatorCertificate = (): Pair => pair('front-proxy-client');
export const proxyAuthority = (): Promise<Authority> => loadAuthority(pair('front-proxy-ca'));
/** The one of kube-apiserver's clients. */
export const clientAuthority = (): Promise<Authority> => loadAuthority(pair('ca'));
/** Of the same name as the aggregator's, but another. */
export const strangeAuthority = (): Promise<Authority> => createAuthority('front-proxy-ca');
