/** Traces of this server and a real kube-apiserver, decoded with the OTLP types of test/clients/go/collector. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort } from '../../hack/cluster/chosen.ts';
import { configure } from '../labs/integration/configure.ts';
import { stopApiserver } from '../labs/integration/control-plane.ts';
import { eventually } from '../labs/integration/eventually.ts';
import { Browser, formIn } from '../fakes/browser.ts';
import { apisPath, call, gateway, secureGateway, type HttpResponse } from '../labs/integration/http.ts';
import { create, releasePath, remove } from '../labs/integration/kube.ts';
import { lab } from '../labs/integration/lab.ts';
import { adminToken, passwordForm, postForm } from '../labs/integration/login.ts';
import { startOpenIDProvider } from '../labs/integration/openid-provider.ts';
import { startProgram, type Program } from '../labs/integration/program.ts';
import { remember } from '../labs/integration/secrets.ts';
import { startNamed } from '../labs/integration/servers.ts';
import { createSlapd, ldapProvider, service, suffix } from '../labs/integration/slapd.ts';
import { removeUser } from '../labs/integration/user-objects.ts';

/** opentelemetry.proto.trace.v1.Span as JSON. Its IDs are in base64. */
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

let collector: Program;
let startApiserver: Awaited<ReturnType<typeof stopApiserver>>;
let restore: () => Promise<void>;
let token: string;
const version = '/version';

beforeAll(async () => {
  const http = `127.0.0.1:${await freePort(24_000)}`;
  const grpc = `127.0.0.1:${await freePort(25_000)}`;
  collector = startProgram(lab().go.collector, [http, grpc]);
  const file = join(lab().dir, 'tracing.yaml');
  const kind = { apiVersion: 'apiserver.config.k8s.io/v1beta1', kind: 'TracingConfiguration' };
  writeFileSync(file, stringify({ ...kind, endpoint: grpc, samplingRatePerMillion: 1_000_000 }));
  token = await adminToken();
  startApiserver = await stopApiserver();
  await startApiserver(`--tracing-config-file=${file}`);
  restore = await eventually('the configuration can be changed', () =>
    configure((configuration) => {
      configuration['tracing'] = { endpoint: `http://${http}`, samplingRatePerMillion: 1_000_000 };
    }),
  );
});

afterAll(async () => {
  await restore();
  await stopApiserver();
  await startApiserver();
  await collector.end();
});

const spans = (): Span[] => collector.lines().map((line) => JSON.parse(line) as Span);
const attribute = ({ attributes }: Span, name: string): string | undefined =>
  attributes.find(({ key }) => key === name)?.value.stringValue;

/** Waits for a span of this kind that `matches`. */
const spanOf = (kind: 'CLIENT' | 'SERVER', matches: (span: Span) => boolean): Promise<Span> =>
  eventually(`a span of kind ${kind}`, () => {
    const found = spans().find((span) => span.kind === `SPAN_KIND_${kind}` && matches(span));
    if (found === undefined)
      throw new Error(
        `none of ${spans()
          .map(({ name }) => name)
          .join(', ')}`,
      );
    return found;
  });

/** Returns the span of a request to this server, and the span of the resulting request to kube-apiserver. */
async function spansOf(response: HttpResponse): Promise<{ own: Span; client: Span }> {
  const isOwn = (span: Span): boolean =>
    attribute(span, 'audit-id') === response.headers['audit-id'] && attribute(span, 'http.route') !== undefined;
  const own = await spanOf('SERVER', isOwn);
  const client = await spanOf('CLIENT', ({ parentSpanId }) => parentSpanId === own.spanId);
  return { own, client };
}

test('kube-apiserver links its span to the span of the gateway if it does not trust the ServiceAccount of the gateway to set the trace', async () => {
  const response = await call(`${gateway()}${version}`, { token });
  expect(response.status).toBe(200);
  const { own, client } = await spansOf(response);
  expect(client.traceId).toBe(own.traceId);
  const isLinked = ({ links = [] }: Span): boolean =>
    links.some(({ traceId, spanId }) => traceId === own.traceId && spanId === client.spanId);
  const theirs = await spanOf('SERVER', isLinked);
  expect(attribute(theirs, 'audit-id')).toBe(response.headers['audit-id']);
});

test('kube-apiserver continues the trace of a gateway whose user is in the group system:masters', async () => {
  const { dir, kubeconfig, address } = lab();
  const http = await freePort(26_000);
  const ports = { http, https: await freePort(http + 1), aggregated: await freePort(11_900, address) };
  const { server } = await startNamed({ dir, kubeconfig, address, ports });
  try {
    await server.ready();
    const response = await call(`http://127.0.0.1:${http}${version}`, { token });
    const { own, client } = await spansOf(response);
    const theirs = await spanOf('SERVER', ({ parentSpanId }) => parentSpanId === client.spanId);
    expect(theirs.traceId).toBe(own.traceId);
  } finally {
    await server.stop();
  }
});

/** Returns true for a span of the aggregated listener that has a link. */
const isAggregated = (span: Span): boolean =>
  attribute(span, 'http.route')?.startsWith(`${apisPath}/nodes`) === true && (span.links ?? []).length > 0;

test('the span of an aggregated request is linked to the span of kube-apiserver', async () => {
  const response = await call(`${gateway()}${apisPath}/nodes?limit=1`, { token });
  expect(response.status).toBe(200);
  const aggregated = await spanOf('SERVER', isAggregated);
  const [link] = aggregated.links ?? [];
  const theirs = await spanOf('CLIENT', ({ spanId }) => spanId === link?.spanId);
  expect(theirs.traceId).toBe(link?.traceId);
});

describe('the span of a login', () => {
  const secret = 'traced-provider';

  /** Runs a login while the provider is configured. Returns the names of the requests to the provider, in order. */
  async function requestsOf(
    provider: object,
    secretValue: string,
    logIn: () => Promise<HttpResponse>,
  ): Promise<string[]> {
    await create(`${releasePath}/secrets`, { metadata: { name: secret }, stringData: { secret: secretValue } });
    const withoutProvider = await configure(({ authentication }) => {
      authentication['identityProviders'] = [provider];
    });
    try {
      const response = await eventually('the provider is available', async () => {
        const login = await logIn();
        expect(login.status).toBe(200);
        return login;
      });
      const own = await spanOf(
        'SERVER',
        (span) => attribute(span, 'audit-id') === response.headers['audit-id'] && span.parentSpanId === undefined,
      );
      return spans()
        .filter((span) => span.parentSpanId === own.spanId)
        .filter((span) => attribute(span, 'service.peer.name') === 'identity-provider')
        .map(({ name }) => name);
    } finally {
      await withoutProvider();
      await remove(`${releasePath}/secrets/${secret}`);
    }
  }

  test('the span of a login through LDAP has a child span for the search and one for the bind', async () => {
    const password = 'of the directory 5520';
    remember(password, service.password);
    const unit = `dn: ou=people,${suffix}\nobjectClass: organizationalUnit\nou: people\n`;
    const person = `dn: uid=tracy,ou=people,${suffix}\nobjectClass: inetOrgPerson\nuid: tracy\ncn: Tracy\nsn: Tracy\nuserPassword: ${password}\n`;
    const slapd = await createSlapd(`${unit}\n${person}`);
    await slapd.start();
    try {
      const provider = ldapProvider(slapd, { name: secret, key: 'secret' }, { groupSearch: undefined });
      const logIn = (): Promise<HttpResponse> => postForm(passwordForm('tracy', password));
      expect(await requestsOf(provider, service.password, logIn)).toEqual(['search', 'bind']);
    } finally {
      await slapd.stop();
      await removeUser('tracy');
    }
  });

  test('the span of a login through OpenID Connect has a child span for the discovery of the provider', async () => {
    const { issuer } = (await call(`${gateway()}/.well-known/openid-configuration`)).json as { issuer: string };
    const openid = await startOpenIDProvider([`${issuer}/oauth/callback/sso`]);
    const { clientSecret, caCertificate } = openid;
    const oidc = {
      issuer: openid.issuer,
      clientID: 'platform',
      clientSecretRef: { name: secret, key: 'secret' },
      caCertificate,
    };
    const browser = new Browser(async (path, { method = 'GET', headers = {}, body }) =>
      call(`${secureGateway()}${path}`, {
        method,
        headers: headers as Record<string, string>,
        ...(body === undefined ? {} : { body }),
      }),
    );
    const logIn = async (): Promise<HttpResponse> => {
      const page = await browser.open('/oauth/account');
      const { form_token = '', next = '' } = formIn(page.text).fields;
      return await browser.send('/oauth/login/sso', { form_token, next });
    };
    try {
      expect(await requestsOf({ name: 'sso', type: 'OIDC', oidc }, clientSecret, logIn)).toEqual(['GET']);
    } finally {
      await openid.stop();
    }
  });
});
