/** Names of the objects that the server reads and writes in its namespace. The chart's RBAC lists the same names. */
export const objectNames = {
  adminSecret: 'platform-admin',
  signingKeysSecret: 'platform-signing-keys',
  refreshKeySecret: 'platform-refresh-key',
  servingCertSecret: 'platform-serving-cert',
  acceptedConfigMap: 'platform-config-accepted',
  lease: 'platform-apiserver',
  caConfigMap: 'platform-apiserver-ca',
} as const;

/** Keys in the objects that `objectNames` lists. */
export const objectKeys = {
  config: 'platform.yaml',
  passwordHash: 'passwordHash',
  password: 'password',
  ca: 'ca.crt',
} as const;

/** API groups of this server, and the versions that it serves. */
export const resourcesGroup = 'resources.platform.io';
export const resourcesVersion = 'v1alpha3';
export const iamGroup = 'iam.platform.io';
export const iamVersion = 'v1alpha2';
export const iamAPIVersion = `${iamGroup}/${iamVersion}` as const;
export const configGroup = 'config.platform.io';
export const loggingGroup = 'logging.platform.io';
export const loggingVersion = 'v1alpha2';
/** Second group of the log queries, served by the gateway only. */
export const tenantGroup = 'tenant.platform.io';
/** APIServices that make kube-apiserver proxy requests for these groups to this server. */
export const apiServices = [`${resourcesVersion}.${resourcesGroup}`, `${loggingVersion}.${loggingGroup}`] as const;
export const usersPath = `/apis/${iamAPIVersion}/users`;
export const sessionsPath = (namespace: string): string => `/apis/${iamAPIVersion}/namespaces/${namespace}/sessions`;
export const loginHistoriesPath = (namespace: string): string =>
  `/apis/${iamAPIVersion}/namespaces/${namespace}/loginhistories`;
export const loginFailuresPath = (namespace: string): string =>
  `/apis/${iamAPIVersion}/namespaces/${namespace}/loginfailuretables`;

/** Returns whether a text is an RFC 1123 subdomain, the format of Kubernetes names. */
export const isSubdomain = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

/** Audience of access tokens for a kube-apiserver that is configured with this issuer. */
export const kubernetesAudience = 'kubernetes';

/**
 * Audience of access tokens of users who must change their password. Only this server enforces the restriction, so no
 * other server is allowed to accept these tokens.
 */
export const passwordChangeAudience = 'password-change';
