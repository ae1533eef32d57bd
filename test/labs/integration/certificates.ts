/** Client certificates: the aggregator's, and others presented instead of it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, loadAuthority, type Authority, type Pair } from '../../../hack/cluster/pki.ts';
import { lab } from './lab.ts';

function pair(name: string): Pair {
  const read = (suffix: string): string => readFileSync(join(lab().dir, 'pki', `${name}.${suffix}`), 'utf8');
  return { certificate: read('crt'), key: read('key') };
}

/** The certificate of kube-apiserver as aggregator. */
export const aggregatorCertificate = (): Pair => pair('front-proxy-client');
export const proxyAuthority = (): Authority => loadAuthority(pair('front-proxy-ca'));
/** The CA of kube-apiserver's clients. */
export const clientAuthority = (): Authority => loadAuthority(pair('ca'));
/** A different CA with the same name as the aggregator's. */
export const strangeAuthority = (): Promise<Authority> => createAuthority('front-proxy-ca');
