/** Spring Security as a web application that logs users in, and as a resource server. */
import { deepEqual, ok } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import { output } from '../../../hack/cluster/exec.ts';
import { configure } from '../../labs/integration/configure.ts';
import { secureGateway } from '../../labs/integration/http.ts';
import { lab } from '../../labs/integration/lab.ts';
import { addressIn, authorize } from '../../labs/integration/person.ts';
import { remember } from '../../labs/integration/secrets.ts';
import { buildJavaProgram, javaCommand } from '../java-program.ts';
import { secretOf, settingsOf } from '../settings.ts';
import type { Site } from '../site.ts';
import type { Built, Flow, Tool } from '../tool.ts';

const source = join(import.meta.dirname, '../java/spring-security/Flows.java');

interface Application {
  readonly 'spring.security.oauth2.client': Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Dedicated client for client credentials. */
const robot = { name: 'spring-robot', secret: 'the secret of a spring 4471' };

/** Returns the documented properties of the registration and its provider. */
function documented(): Readonly<Record<string, string>> {
  const sections = (parse(settingsOf('Spring Security')[0] ?? '') as Application)['spring.security.oauth2.client'];
  return {
    ...sections['registration.platform'],
    ...sections['provider.platform'],
    'client-secret': secretOf('spring'),
    // The default of Spring Boot, {baseUrl}/login/oauth2/code/{registrationId}.
    'redirect-uri': 'http://127.0.0.1:9/login/oauth2/code/platform',
    robot: robot.name,
    'robot-secret': robot.secret,
  };
}

/** Java options that trust the server's CA. Java reads no PEM files. */
async function trusting(site: Site): Promise<string[]> {
  const store = join(site.folder(), 'ca.p12');
  const args = ['-importcert', '-noprompt', '-alias', 'ca', '-storepass', 'public', '-storetype', 'PKCS12'];
  await output('keytool', [...args, '-file', lab().authorityFile, '-keystore', store]);
  return [`-Djavax.net.ssl.trustStore=${store}`, '-Djavax.net.ssl.trustStorePassword=public'];
}

/** Runs the program, opens the address that it prints as the user admin, and returns its results. */
async function results(built: Built, site: Site): Promise<Record<string, string>> {
  const [program, ...args] = javaCommand(built, ...(await trusting(site)));
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended = once(child, 'close');
  const properties = Object.entries(documented()).map(([name, value]) => `${name}=${value}`);
  child.stdin.write(`${properties.join('\t')}\n`);
  const found: Record<string, string> = {};
  for await (const line of createInterface(child.stdout)) {
    const address = addressIn(`${line}\n`);
    const [, name = '', value = ''] = /^([^:]*): (.*)$/.exec(line) ?? [];
    if (address === undefined) found[name] = value;
    else child.stdin.write(`${await authorize(address)}\n`);
  }
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(errors);
  return found;
}

const refused = 'refused: An error occurred while attempting to decode the Jwt: the given typ value';

const everything: Flow = async (built, site) => {
  remember(robot.secret);
  const restore = await configure(({ authentication }) => {
    authentication.clients.push({ ...robot, grantTypes: ['client_credentials'] });
  });
  try {
    deepEqual(await results(built, site), {
      user: 'admin [platform:admins]',
      id_token: '[spring]',
      userinfo: 'admin',
      refreshed: 'true',
      'resource server by default': `${refused} needs to be one of [JWT]`,
      'resource server of RFC 9068': `ES256 [${secureGateway()}] admin`,
      'resource server of RFC 9068, id_token': `${refused} needs to be one of [at+jwt, application/at+jwt]`,
      introspection: 'admin [platform:admins]',
      'introspection after revocation': "refused: Provided token isn't active",
      'client credentials': `ES256 [${secureGateway()}] platform:client:spring-robot`,
    });
  } finally {
    await restore();
  }
};

/** The program contains the documented decoder. */
const documentedDecoder: Flow = async () => {
  const [program, block] = [await readFile(source, 'utf8'), settingsOf('Spring Security')[1] ?? ''].map((text) =>
    text.replaceAll(/\s/g, ''),
  );
  ok(block !== '' && program?.includes(block ?? ''), 'Flows.java lacks the block of docs/guides/clients.md');
};

export const springSecurity: Tool = {
  name: 'spring-security',
  build: () => buildJavaProgram('spring-security'),
  flows: {
    'uses the documented JWT decoder': documentedDecoder,
    'logs in with PKCE, refreshes and validates tokens, and detects a revoked token': everything,
  },
};
