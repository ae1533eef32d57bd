import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';

export interface Login {
  /** HTTPS URL of the server. */
  readonly url: string;
  /** CA of the server, in PEM. */
  readonly authority: string;
  readonly username: string;
  readonly password: string;
}

/** Logs in and returns the kubeconfig that the server issues, with a token that is valid for two hours. */
export async function fetchKubeconfig({ url, authority, username, password }: Login): Promise<string> {
  const fetchText = async (path: string, headers: Readonly<Record<string, string>>, body?: string): Promise<string> => {
    const method = body === undefined ? 'GET' : 'POST';
    const request = https.request(`${url}${path}`, { method, ca: authority, headers, agent: false });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const all = await text(response);
    if (response.statusCode !== 200) throw new Error(`${path} returned ${response.statusCode}: ${all}`);
    return all;
  };
  const form = new URLSearchParams({
    grant_type: 'password',
    username,
    password,
    client_id: 'platform',
    client_secret: 'platform',
  });
  const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const { access_token: token } = JSON.parse(await fetchText('/oauth/token', type, form.toString())) as {
    access_token: string;
  };
  const bearer = { Authorization: `Bearer ${token}` };
  return fetchText('/kapis/config.platform.io/v1alpha2/kubeconfig?token=embed', bearer);
}
