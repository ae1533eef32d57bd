import type { RemoteStoreSettings } from '../../../config/log-stores.ts';
import { serviceUnavailable } from '../../../runtime/errors.ts';
import type { StoreEndpoint } from './store-client.ts';

export interface SecretReader {
  /** Returns the value; undefined if the Secret or the key does not exist, or is not loaded yet. */
  read(ref: { readonly name: string; readonly key: string }): string | undefined;
}

/** Returns the address and the credentials of a store. */
export function endpointOf(name: string, settings: RemoteStoreSettings, secrets: SecretReader): StoreEndpoint {
  const { url, caCertificate, basicAuth, tokenRef } = settings;
  const unusable = (problem: string): Error =>
    serviceUnavailable(
      `the log store "${name}" is unavailable: its credentials are missing or malformed`,
      5,
      new Error(problem),
    );
  const secret = (ref: { name: string; key: string }): string => {
    const value = secrets.read(ref);
    if (value === undefined) throw unusable(`Secret "${ref.name}" has no key "${ref.key}"`);
    return value;
  };
  return {
    url,
    caCertificate,
    authorization() {
      if (tokenRef !== undefined) {
        const token = secret(tokenRef);
        if (!/^[ -~]+$/.test(token))
          throw unusable(
            `key "${tokenRef.key}" of Secret "${tokenRef.name}" is not a token: it must contain only printable ASCII characters`,
          );
        return `Bearer ${token}`;
      }
      if (basicAuth === undefined) return undefined;
      const { username, passwordRef } = basicAuth;
      return `Basic ${Buffer.from(`${username}:${secret(passwordRef)}`).toString('base64')}`;
    },
  };
}
