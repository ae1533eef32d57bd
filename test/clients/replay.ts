/**
 * Tools that no package registry provides: test/clients/go/replay logs in with the libraries and settings of each tool.
 */
import { freePort } from '../../hack/cluster/chosen.ts';
import { lab } from '../labs/integration/lab.ts';
import { visit } from '../labs/integration/person.ts';
import { startProgram } from '../labs/integration/program.ts';
import { remember } from '../labs/integration/secrets.ts';

/** Input of the program. */
export interface ReplaySettings {
  readonly issuer?: string;
  readonly clientID: string;
  readonly clientSecret?: string;
  readonly redirectURL: string;
  readonly scopes: readonly string[];
  readonly pkce: boolean;
  /** Token that the tool forwards. */
  readonly token: 'id_token' | 'access_token';
  readonly audience?: string;
  readonly tokenIssuer?: string;
  readonly authURL?: string;
  readonly tokenURL?: string;
  readonly userInfoURL?: string;
  /** JMESPath expressions by attribute of the user. */
  readonly attributes?: Readonly<Record<string, string>>;
}

interface Replayed {
  /** Message of the tool, if the login failed. */
  readonly error?: string;
  readonly token: string;
  /** The token that the tool forwards after a refresh; empty without a refresh token. */
  readonly refreshed: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Port for the redirect URI of a tool. */
export const toolPort = (): Promise<number> => freePort(24_200);

/** Logs in as admin. */
export async function replay(settings: ReplaySettings): Promise<Replayed> {
  const program = startProgram(lab().go.replay, [], {
    SETTINGS: JSON.stringify(settings),
    SSL_CERT_FILE: lab().authorityFile,
  });
  try {
    const address = await program.line('the tool opens an address', (line) => line.startsWith('https:'));
    await visit(address);
    const replayed = JSON.parse(
      await program.line('the tool prints its result', (line) => line.startsWith('{')),
    ) as Replayed;
    remember(replayed.token, replayed.refreshed);
    return replayed;
  } finally {
    await program.end();
  }
}
