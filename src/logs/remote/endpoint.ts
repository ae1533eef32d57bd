import type { StoreSettings } from '../../config/logging.ts';
import { serviceUnavailable } from '../../errors.ts';
import type { Endpoint } from './store-client.ts';

export interface SecretReader {
  /** Undefined if there is none (yet). */
  read(ref: { readonly name: string; readonly key: string }): string | undefined;
}

/** Where a store is, and what lets us in. */
export function endpointOf(name: string, settings: StoreSettings, secrets: SecretReader): Endpoint {
  const { url, caCertificate, basicAuth, tokenRef } = settings;
  const secret = (ref: { name: string; key: string }): string => {
    const value = secrets.read(ref);
    if (value !== undefined) return value;
    const cause = new Error(`there is no key "${ref.key}" in a Secret "${ref.name}"`);
    throw serviceUnavailable(`the log store "${name}" cannot be asked: the credentials for it are missing`, 5, cause);
  };
  return {
    url,
    caCertificate,
    authorization() {
      if (tokenRef !== undefined) return `Bearer ${secret(tokenRef)}`;
      if (basicAuth === undefined) return undefined;
      const { username, passwordRef } = basicAuth;
      return `Basic ${Buffer.from(`${username}:${secret(passwordRef)}`).toString('base64')}`;
    },
  };
}
