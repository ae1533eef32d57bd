import type { PlatformConfiguration } from '../../config/schema.ts';
import type { Filter } from '../exchange.ts';
import { isSecure } from '../secure.ts';

/**
 * RFC 6797, at the host of gateway.externalURL alone: a browser applies the policy to every port of a host, and the host name of the
 * Service has plain HTTP at port 80. URLs are parsed only when a request differs from the one before.
 */
export function strictTransportSecurity(gateway: () => PlatformConfiguration['gateway']): Filter {
  let last = { externalURL: '', host: '', isSame: false };
  return ({ req, res }) => {
    const { externalURL, strictTransportSecurity: maxAge } = gateway();
    if (maxAge === 0 || !isSecure(req)) return;
    const { host = '' } = req.headers;
    if (last.externalURL !== externalURL || last.host !== host)
      last = { externalURL, host, isSame: hostnameOf(`https://${host}`) === hostnameOf(externalURL) };
    if (last.isSame) res.setHeader('Strict-Transport-Security', `max-age=${Math.ceil(maxAge / 1_000)}`);
  };
}

const hostnameOf = (url: string): string | undefined => URL.parse(url)?.hostname;
