/** A real browser: Chromium, which finds the platform under its issuer's name and some other sites beside it. */
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { chromium, type Browser } from 'playwright-core';
import { demand, lab } from './lab.ts';
import type { Sites } from './sites.ts';

/** The default of the configuration, and the origin of our pages. */
export const issuer = 'https://platform-apiserver.platform-system.svc';

/** The certificate of a replica, judged by the authority that it publishes. */
async function servingCertificate(port: number): Promise<X509Certificate> {
  const socket = connect({ port, host: '127.0.0.1', servername: new URL(issuer).hostname, ca: lab().authority });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  if (certificate === undefined) throw new Error('the replica shows no certificate');
  return certificate;
}

/** As Chromium names a key that it is to trust. */
const keyOf = ({ publicKey }: X509Certificate): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64');

/** What the package of the browser has beside it; one that was named uses the machine's. */
export function beside(program: string): Record<string, string> {
  const fonts = join(dirname(program), 'fonts.conf');
  return existsSync(fonts) ? { LD_LIBRARY_PATH: join(dirname(program), 'lib'), FONTCONFIG_FILE: fonts } : {};
}

export async function startBrowser(sites: Sites): Promise<Browser> {
  const program = demand(lab().chromium);
  const [{ https }] = lab().replicas;
  const keys = [await servingCertificate(https), new X509Certificate(sites.certificate)].map(keyOf);
  return chromium.launch({
    executablePath: program,
    env: { ...process.env, ...beside(program) },
    args: [
      '--disable-gpu',
      `--ignore-certificate-errors-spki-list=${keys.join(',')}`,
      // No name is looked up anywhere else.
      `--host-resolver-rules=MAP ${new URL(issuer).host}:443 127.0.0.1:${https}, MAP *:443 127.0.0.1:${sites.port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
    ],
  });
}
