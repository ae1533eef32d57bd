import type { RemoteStoreSettings } from '../../../config/log-stores.ts';
import { serviceUnavailable } from '../../../runtime/errors.ts';
import type { StoreEndpoint } from './store-client.ts';

export interface SecretReader {
  /** Undefined if there is none (yet). */
  read(ref: { readonly name: string; readonly key: string }): string | undefined;
}

/** Where a store is, and what lets us in. */
export function endpointOf(name: string, settings: RemoteStoreSettings, secrets: SecretReader): StoreEndpoint {
  const { url, caCertificate, basicAuth, tokenRef } = settings;
  const unusable = (problem: string): Error =>
    serviceUnavailable(
      `the log store "${name}" cannot be asked: the credentials for it are missing, or can be none`,
      5,
      new Error(problem),
    );
  const secret = (ref: { name: string; key: string }): string => {
    const value = secrets.read(ref);
    if (value === undefined) throw unusable(`there is no key "${ref.key}" in a Secret "${ref.name}"`);
    return value;
  };
  return {
    url,
    caCertificate,
    authorization() {
      if (tokenRef !== undefined) {
        const token = secret(tokenRef);
        if (!/^[ -~]+$/.test(token)) throw unusable(`"${tokenRef.key}" of the Secret "${tokenRef.name}" is no token`);
        return `Bearer ${token}`;
      }
      if (basicAuth === undefined) return undefined;
      const { username, passwordRef } = basicAuth;
      return `Basic ${Buffer.from(`${username}:${secret(passwordRef)}`).toString('base64')}`;
    },
  };
}
