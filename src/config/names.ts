/**
 * The objects that the server reads and writes in its namespace. The chart's RBAC lists the same names.
 */
export const objectNames = {
  adminSecret: 'platform-admin',
  signingKeysSecret: 'platform-signing-keys',
  refreshKeySecret: 'platform-refresh-key',
  servingCertSecret: 'platform-serving-cert',
  acceptedConfigMap: 'platform-config-accepted',
  lease: 'platform-apiserver',
  caConfigMap: 'platform-apiserver-ca',
} as const;

/** The keys inside them. */
export const objectKeys = {
  config: 'platform.yaml',
  passwordHash: 'passwordHash',
  password: 'password',
  ca: 'ca.crt',
} as const;

const resourcesGroup = 'resources.platform.io';
const resourcesVersion = 'v1alpha3';
export const loggingGroup = 'logging.platform.io';
export const loggingVersion = 'v1alpha2';
/** Under which the logs are served too, to who has a token. */
export const tenantGroup = 'tenant.platform.io';
/** By which kube-apiserver passes requests of these groups on to this server. */
export const apiServices = [`${resourcesVersion}.${resourcesGroup}`, `${loggingVersion}.${loggingGroup}`] as const;
export const usersPath = '/apis/iam.platform.io/v1alpha2/users';
export const sessionsPath = (namespace: string): string =>
  `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/sessions`;
export const loginHistoriesPath = (namespace: string): string =>
  `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/loginhistories`;
export const loginFailuresPath = (namespace: string): string =>
  `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/loginfailuretables`;

/** RFC 1123, as Kubernetes' names are. */
export const isSubdomain = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);
