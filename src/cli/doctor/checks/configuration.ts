/** Checks the cluster configuration object, the Secrets that the object names, and the URLs that browsers open. */
import { secretsIn, warningsOf } from '../../../accounts/directory/configuration-warnings.ts';
import { secretValue, type Secret, type SecretKeyRef } from '../../../cluster/secret-refs.ts';
import { objectKeys } from '../../../config/names.ts';
import { formatProblem } from '../../../config/parse.ts';
import { isClusterName, publicURL } from '../../../config/public-url.ts';
import type { PlatformConfiguration } from '../../../config/schema.ts';
import { mapConcurrent } from '../../../runtime/promises.ts';
import { failed, notChecked, ok, warning, type Check, type Finding } from '../check.ts';
import type { Context } from '../context.ts';
import type { Event } from '../objects.ts';
import { resources } from '../reader.ts';
import { kubeApiserver } from './kube-apiserver.ts';

export const configuration: Check = {
  name: 'configuration',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { commands, namespace } = context;
    const { config, configMap: name } = await context.flags();
    if (config !== undefined) {
      yield notChecked(`needs access to the configuration file ${config} in the pods (--config)`);
      return;
    }
    const where = `ConfigMap ${namespace}/${name}`;
    const configMap = await context.configMap();
    const parsed = await context.configuration();
    if (configMap === undefined || parsed === undefined) {
      yield failed(
        configMap === undefined ? `${where} does not exist` : `${where} has no key ${objectKeys.config}`,
        await context.restore(),
      );
      return;
    }
    if (!parsed.ok) {
      for (const problem of parsed.problems)
        yield failed(`${where}: ${formatProblem(problem)}`, commands.inNamespace`edit configmap ${name}`);
      return;
    }
    yield ok(`${where} is valid`);
    yield* rejections(context, name, configMap.metadata.resourceVersion);
  },
};

/**
 * Reports the Event in which the server rejected this version of the ConfigMap. The server may reject a configuration
 * that this program accepts, because their versions may differ.
 */
async function* rejections(context: Context, name: string, version: string | undefined): AsyncGenerator<Finding> {
  const { reader, commands, namespace } = context;
  const fieldSelector = `involvedObject.name=${name}`;
  const events = await reader.list<Event>(resources.events, namespace, { fieldSelector });
  const rejection = events.findLast(
    ({ reason, involvedObject }) => reason === 'ConfigurationRefused' && involvedObject.resourceVersion === version,
  );
  if (rejection !== undefined)
    yield failed(
      `the server rejected ConfigMap ${namespace}/${name}: ${rejection.message ?? ''}`,
      commands.inNamespace`get events --field-selector ${fieldSelector}`,
    );
}

/** Returns the configuration if it is valid. */
async function validConfiguration(context: Context): Promise<PlatformConfiguration | undefined> {
  const parsed = await context.configuration();
  return parsed?.ok === true ? parsed.value : undefined;
}

export const secrets: Check = {
  name: 'secrets',
  needs: [configuration.name],
  async *run(context) {
    const { reader, namespace, commands } = context;
    const value = await validConfiguration(context);
    if (value === undefined) {
      yield notChecked('needs a configuration in a ConfigMap');
      return;
    }
    const found = new Map<string, Secret | undefined>();
    for (const name of secretsIn(value)) found.set(name, await reader.get<Secret>(resources.secrets, name, namespace));
    const read = ({ name, key }: SecretKeyRef): string | undefined => secretValue(found.get(name), key);
    const problemOf = ({ name, key }: SecretKeyRef): string | undefined => {
      if (found.get(name) === undefined) return `Secret ${namespace}/${name} does not exist`;
      return read({ name, key }) ? undefined : `Secret ${namespace}/${name} has no value for the key "${key}"`;
    };
    const problems = warningsOf(value, { read, problemOf });
    for (const problem of problems) yield failed(formatProblem(problem), commands.inNamespace`get secrets`);
    if (problems.length === 0)
      yield ok(`all keys of Secrets that the configuration references exist (Secrets: ${found.size})`);
  },
};

/** Maximum number of host names that are resolved. */
const maxHosts = 50;

export const urls: Check = {
  name: 'URLs',
  needs: [configuration.name],
  async *run(context) {
    const value = await validConfiguration(context);
    if (value === undefined) {
      yield notChecked('needs a configuration in a ConfigMap');
      return;
    }
    const { authentication, gateway } = value;
    const { issuer, clients } = authentication;
    const redirects = clients.flatMap(({ name, redirectURIs }) =>
      redirectURIs.map((uri) => ({ key: `redirect URI of the client "${name}"`, uri })),
    );
    const set = context.commands
      .helm`upgrade ${await context.release()} CHART --reuse-values --set config.authentication.issuer=https://HOST --set config.gateway.externalURL=https://HOST`;
    if (publicURL(value) === undefined) {
      const message = `authentication.issuer is ${issuer}, which only pods can resolve: browsers cannot log in`;
      yield redirects.length === 0 ? ok(message) : warning(message, set);
    } else if (gateway.externalURL !== '' && new URL(gateway.externalURL).origin !== new URL(issuer).origin)
      yield warning(`authentication.issuer (${issuer}) and gateway.externalURL (${gateway.externalURL}) differ`, set);
    else yield ok(`browsers reach the server at ${issuer}`);
    const external = [{ key: 'authentication.issuer', uri: issuer }];
    if (gateway.externalURL !== '') external.push({ key: 'gateway.externalURL', uri: gateway.externalURL });
    yield* unresolved(context, [...external, ...redirects]);
  },
};

/** Resolves the hosts of URLs that browsers open. */
export async function* unresolved(
  { lookup }: Pick<Context, 'lookup'>,
  uris: readonly { readonly key: string; readonly uri: string }[],
): AsyncGenerator<Finding> {
  const byHost = new Map(
    uris
      .map(({ key, uri }) => ({ key, url: new URL(uri) }))
      .filter(({ url }) => url.protocol === 'https:' && !isClusterName(url.hostname))
      .map(({ key, url }) => [url.hostname.replace(/^\[|\]$/g, ''), key]),
  );
  const lookups = await mapConcurrent([...byHost].slice(0, maxHosts), maxHosts, async ([host, key]) => {
    const code = await lookup(host).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    return { host, key, code };
  });
  for (const { host, key, code } of lookups)
    if (code === 'ENOTFOUND')
      yield warning(`${key}: the host ${host} does not resolve on this machine`, `getent hosts ${host}`);
    else if (code !== undefined) yield notChecked(`needs DNS on this machine to resolve ${host} (${code})`);
}
