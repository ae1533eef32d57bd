/** Checks the serving certificate and the APIServices, which kube-apiserver needs to trust the server. */
import { dirname } from 'node:path/posix';
import type { X509Certificate } from 'node:crypto';
import type { PresentedChain } from '../../../auth/authenticators/client-chain.ts';
import type { Secret } from '../../../cluster/secret-refs.ts';
import { apiServices, objectNames } from '../../../config/names.ts';
import { certificatesIn, expiresSoon, isSignedBy, leafProblem } from '../certificates.ts';
import { failed, notChecked, ok, Stop, warning, type Check, type Finding } from '../check.ts';
import { deploymentName, type Context } from '../context.ts';
import type { APIService } from '../objects.ts';
import { resources } from '../reader.ts';
import { kubeApiserver } from './kube-apiserver.ts';

/** Returns the name of the Secret with the serving certificate; undefined if it is in another volume. */
async function certificateSecret(context: Context): Promise<string | undefined> {
  const { tlsCertFile } = await context.flags();
  if (tlsCertFile === undefined) return objectNames.servingCertSecret;
  const { containers, volumes = [] } = (await context.deployment())?.spec.template.spec ?? { containers: [] };
  const mount = containers[0]?.volumeMounts?.find(({ mountPath }) => mountPath === dirname(tlsCertFile));
  return volumes.find(({ name }) => name === mount?.name)?.secret?.secretName;
}

/**
 * Returns the serving certificate that a replica presents, or else the certificate in the Secret. Throws Stop if
 * neither can be read.
 */
async function chainOf(context: Context): Promise<{ readonly where: string; readonly chain: PresentedChain }> {
  const chain = await context.served();
  if (chain !== undefined) return { where: 'the certificate that the server presents', chain };
  const name = await certificateSecret(context);
  if (name === undefined) throw new Stop(notChecked('needs a connection to a pod'));
  const where = `Secret ${context.namespace}/${name}`;
  const secret = await context.reader.get<Secret>(resources.secrets, name, context.namespace);
  if (secret === undefined)
    throw new Stop(failed(`${where} with the serving certificate does not exist`, log(context)));
  const [leaf, ...intermediates] = certificatesIn(
    Buffer.from(secret.data?.['tls.crt'] ?? '', 'base64').toString('utf8'),
  );
  if (leaf === undefined) throw new Stop(failed(`${where} has no certificate in tls.crt`, log(context)));
  return { where: `the certificate in ${where}`, chain: { leaf, intermediates } };
}

/** Returns the command that shows why the server has not written its certificate or CA. */
const log = ({ commands }: Context): string => commands.inNamespace`logs deployment/${deploymentName} --tail=20`;

/**
 * Returns the command that renews a certificate issued by the server. For other certificates, the command shows the
 * Secret or, if it is unknown, the Deployment.
 */
async function renewal(context: Context): Promise<string> {
  const { commands } = context;
  const { tlsCertFile } = await context.flags();
  const name = await certificateSecret(context);
  if (tlsCertFile === undefined) return commands.inNamespace`rollout restart deployment/${deploymentName}`;
  return name === undefined
    ? commands.inNamespace`describe deployment ${deploymentName}`
    : commands.inNamespace`describe secret ${name}`;
}

export const certificate: Check = {
  name: 'certificate',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { host, now } = context;
    const { where, chain } = await chainOf(context);
    const problem = leafProblem(chain.leaf, host, now());
    const until = chain.leaf.validToDate.toISOString();
    if (problem !== undefined) yield failed(`${where} ${problem}`, await renewal(context));
    else if (expiresSoon(chain.leaf, now())) yield warning(`${where} expires on ${until}`, await renewal(context));
    else yield ok(`${where} is valid for ${host} until ${until}`);
  },
};

export const registrations: Check = {
  name: 'APIServices',
  needs: [kubeApiserver.name],
  async *run(context) {
    for (const name of apiServices) yield* registration(name, context);
  },
};

async function* registration(name: string, context: Context): AsyncGenerator<Finding> {
  const { commands, namespace, serviceName } = context;
  const where = `APIService ${name}`;
  const found = await context.apiService(name);
  if (found === undefined) {
    yield failed(`${where} does not exist: kube-apiserver does not know the API`, await context.restore());
    return;
  }
  const { service, insecureSkipTLSVerify } = found.spec;
  if (service === undefined || service.namespace !== namespace || service.name !== serviceName) {
    const named = service === undefined ? 'no Service' : `Service ${service.namespace}/${service.name}`;
    yield failed(`${where} names ${named} instead of ${namespace}/${serviceName}`, await context.restore());
    return;
  }
  const { port = 443 } = service;
  const ports = (await context.service())?.spec.ports ?? [];
  if (ports.length > 0 && !ports.some((one) => one.port === port))
    yield failed(
      `${where} names port ${port}, which Service ${namespace}/${serviceName} does not have`,
      await context.restore(),
    );
  else if (insecureSkipTLSVerify === true)
    yield warning(
      `${where} has insecureSkipTLSVerify: anyone between kube-apiserver and the pods can read and change requests`,
      commands.kubectl`patch apiservice ${name} --type=merge -p '{"spec":{"insecureSkipTLSVerify":null}}'`,
    );
  else yield await bundleFinding(found, context);
}

async function bundleFinding({ metadata, spec }: APIService, context: Context): Promise<Finding> {
  const { commands } = context;
  const where = `caBundle of APIService ${metadata.name}`;
  const { tlsCertFile } = await context.flags();
  const fix =
    tlsCertFile === undefined
      ? // The server writes its CA every 30 seconds.
        log(context)
      : commands.kubectl`get apiservice ${metadata.name} -o jsonpath='{.spec.caBundle}' | base64 -d | openssl x509 -noout -subject -enddate`;
  if (spec.caBundle === undefined)
    return tlsCertFile === undefined
      ? failed(`${where} is missing: the server writes its CA within a minute after its start`, fix)
      : ok(`${where} is missing: kube-apiserver trusts the CAs of its system`);
  let authorities: X509Certificate[];
  try {
    authorities = certificatesIn(Buffer.from(spec.caBundle, 'base64').toString('utf8'));
  } catch (error) {
    return failed(`${where} is malformed: ${(error as Error).message}`, fix);
  }
  if (authorities.length === 0) return failed(`${where} contains no certificate in PEM`, fix);
  const { where: what, chain } = await chainOf(context);
  if (!isSignedBy(chain, authorities, context.now()))
    return failed(`${where} contains no valid CA that has signed ${what}`, fix);
  return ok(`${where} has signed ${what}`);
}
