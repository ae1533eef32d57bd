/** Removes secrets from objects of the cluster, for the support bundle. */
import { parseConfiguration } from '../../config/parse.ts';
import { readYAML, toYAML } from '../../config/yaml.ts';
import { isSecret, redactText } from '../../runtime/redaction.ts';
import { objectKeys } from '../../config/names.ts';

const redacted = '[redacted]';

/**
 * Annotations whose values are shown. Other annotations, such as those of kubectl, kapp and Rancher, may contain a copy
 * of the object.
 */
const shownAnnotation = /^(?:meta\.helm\.sh|helm\.sh|deployment\.kubernetes\.io|platform\.io)\//;

interface Fields {
  readonly [key: string]: unknown;
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/** Returns a copy of an object or list without secrets. For a Secret, the copy contains only the keys of its data. */
export function redactObject(value: unknown, isInSecret = false): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map((item) => redactObject(item, isInSecret));
  if (!isFields(value)) return value;
  if (objectKeys.config in value) return redactConfigMap(value);
  // The items of a list of Secrets have no `kind`.
  const isSecretObject = isInSecret || value['kind'] === 'Secret' || value['kind'] === 'SecretList';
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'managedFields')
      .map(([key, item]) => {
        if (isSecretObject && (key === 'data' || key === 'stringData')) return [key, keysOnly(item)];
        if (key === 'annotations') return [key, keysOnly(item, (name) => shownAnnotation.test(name))];
        if (valueLists.has(key) && Array.isArray(item)) return [key, item.map(withoutValue)];
        if (argumentLists.has(key) && Array.isArray(item)) return [key, item.map(redactArgument)];
        if (driverSettings.has(key) && !Array.isArray(item)) return [key, keysOnly(item)];
        if (typeof item === 'string' && isSecret(key) && key !== templateHash) return [key, redacted];
        return [key, redactObject(item, isSecretObject)];
      }),
  );
}

/** Redacts the values of all keys except those that `isShown` selects. */
const keysOnly = (data: unknown, isShown: (key: string) => boolean = () => false): unknown =>
  isFields(data)
    ? Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, isShown(key) ? redactObject(value) : redacted]),
      )
    : redacted;

/**
 * Fields that are lists of names with values. Environment variables and headers often contain passwords, whatever their
 * names are.
 */
const valueLists = new Set(['env', 'httpHeaders']);

/** Fields with the words of a command line. */
const argumentLists = new Set(['args', 'command']);

/**
 * Redacts the value of a flag such as --admin-password=…, and all words that are not long flags. Such a word may be the
 * value of the previous flag, a script or a header.
 */
const redactArgument = (word: unknown): unknown => {
  const [, flag, name = ''] = /^(--([\w-]+))(?:=\S*)?$/.exec(String(word)) ?? [];
  if (flag === undefined) return redacted;
  return isSecret(name) && flag !== word ? `${flag}=${redacted}` : redactObject(word);
};

/** Fields with settings of storage drivers, which are different for each driver. */
const driverSettings = new Set(['volumeAttributes', 'options']);

/** Label by which a Deployment selects its pods. The label is no secret, although its name ends with `hash`. */
const templateHash = 'pod-template-hash';

/** Redacts the configuration of a ConfigMap, and all other keys, such as copies of an earlier configuration. */
const redactConfigMap = (data: Fields): unknown => ({
  ...(keysOnly(data) as Fields),
  [objectKeys.config]: redactConfiguration(String(data[objectKeys.config])),
});

const withoutValue = (variable: unknown): unknown =>
  isFields(variable) && 'value' in variable ? { ...variable, value: redacted } : variable;

/** Keys of the configuration whose values are URLs of other servers. */
const receivers = new Set(['url', 'endpoint']);

/**
 * Redacts the secret fields of a configuration. In an invalid configuration, a secret can be in any field, so all
 * values are redacted.
 */
function redactConfiguration(text: string): string {
  const yaml = readYAML(text);
  if (!yaml.ok) return redacted;
  const isValid = parseConfiguration(text).ok;
  const redact = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => redact(item, name));
    if (isFields(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item, key)]));
    // In an invalid configuration, a secret that consists of digits may be a number, so values of all types are
    // redacted.
    if (isValid ? typeof value === 'string' && isSecret(name) : value !== null) return redacted;
    // Paths and queries of receivers may contain tokens.
    const url = receivers.has(name) ? URL.parse(String(value)) : null;
    return url === null ? value : `${url.protocol}//${url.host}`;
  };
  return toYAML(redact(yaml.content, ''));
}
