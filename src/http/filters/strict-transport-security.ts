import type { PlatformConfiguration } from '../../config/schema.ts';
import type { RequestFilter } from '../exchange.ts';
import { isSecure } from '../listeners/secure.ts';

/**
 * RFC 6797, at the host of gateway.externalURL alone: a browser applies the policy to every port of a host, and the host name of the
 * Service has plain HTTP at port 80.
 */
export function strictTransportSecurity(gateway: () => PlatformConfiguration['gateway']): RequestFilter {
  let own: { readonly externalURL: string; readonly hostname: string | undefined } | undefined;
  return ({ req, res }) => {
    const { externalURL, strictTransportSecurity: maxAge } = gateway();
    if (maxAge === 0 || !isSecure(req)) return;
    if (own?.externalURL !== externalURL) own = { externalURL, hostname: hostnameOf(externalURL) };
    if (hostnameOf(`https://${req.headers.host ?? ''}`) !== own.hostname) return;
    res.setHeader('Strict-Transport-Security', `max-age=${Math.ceil(maxAge / 1_000)}`);
  };
}

const hostnameOf = (url: string): string | undefined => URL.parse(url)?.hostname;
