/**
 * Starts Chromium, which connects to a replica for the host of the issuer, and to the tests' own server for any other
 * https host.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { chromium, type Browser } from 'playwright-core';
import { foundPath, lab } from './lab.ts';
import type { Sites } from './sites.ts';

/** Default issuer of the configuration, and origin of the server's pages. */
export const issuer = 'https://platform-apiserver.platform-system.svc';

/** Returns the certificate of a replica after validation with the published CA. */
async function servingCertificate(port: number): Promise<X509Certificate> {
  const socket = connect({ port, host: '127.0.0.1', servername: new URL(issuer).hostname, ca: lab().authority });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  if (certificate === undefined) throw new Error('the replica presented no certificate');
  return certificate;
}

/** Returns the hash that makes Chromium trust a key. */
const keyOf = ({ publicKey }: X509Certificate): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64');

/**
 * Returns the environment in which the browser finds the libraries of its package. A browser from the variable CHROMIUM
 * uses the libraries of the machine.
 */
function beside(program: string): Record<string, string> {
  const fonts = join(dirname(program), 'fonts.conf');
  return existsSync(fonts) ? { LD_LIBRARY_PATH: join(dirname(program), 'lib'), FONTCONFIG_FILE: fonts } : {};
}

/** Starts a browser with additional flags. */
export const launch = (executablePath: string, ...flags: readonly string[]): Promise<Browser> =>
  chromium.launch({
    executablePath,
    env: { ...process.env, ...beside(executablePath) },
    args: ['--disable-gpu', ...flags],
  });

export async function startBrowser(sites: Sites): Promise<Browser> {
  const [{ https }] = lab().replicas;
  const keys = [await servingCertificate(https), new X509Certificate(sites.certificate)].map(keyOf);
  return launch(
    foundPath(lab().chromium),
    `--ignore-certificate-errors-spki-list=${keys.join(',')}`,
    // The browser resolves no other host names.
    `--host-resolver-rules=MAP ${new URL(issuer).host}:443 127.0.0.1:${https}, MAP *:443 127.0.0.1:${sites.port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
  );
}
