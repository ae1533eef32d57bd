/** Certificate of the aggregator, and CAs that issue other client certificates for the tests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, loadAuthority, type Authority, type Pair } from '../../../hack/cluster/pki.ts';
import { lab } from './lab.ts';

function pair(name: string): Pair {
  const read = (suffix: string): string => readFileSync(join(lab().dir, 'pki', `${name}.${suffix}`), 'utf8');
  return { certificate: read('crt'), key: read('key') };
}

/** Returns the client certificate that kube-apiserver presents as aggregator. */
export const aggregatorCertificate = (): Pair => pair('front-proxy-client');
export const proxyAuthority = (): Authority => loadAuthority(pair('front-proxy-ca'));
/** Returns the CA that issues the certificates of kube-apiserver's clients. */
export const clientAuthority = (): Authority => loadAuthority(pair('ca'));
/** Creates a different CA with the name of the CA of the aggregator. */
export const strangeAuthority = (): Promise<Authority> => createAuthority('front-proxy-ca');
