/** Removes secrets from objects of the cluster, for the support bundle. */
import { parseConfiguration } from '../../config/parse.ts';
import { readYAML, toYAML } from '../../config/yaml.ts';
import { isSecret, redactText } from '../../runtime/redaction.ts';
import { objectKeys } from '../../config/names.ts';

const redacted = '[redacted]';

/** Fields of objects that are large, or repeat the content of the object. */
const omitted = new Set(['managedFields', 'kubectl.kubernetes.io/last-applied-configuration']);

interface Fields {
  readonly [key: string]: unknown;
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/** Returns a copy of an object or list without secrets. The data of a Secret has only its keys. */
export function redactObject(value: unknown, isInSecret = false): unknown {
  if (typeof value === 'string') return redactText(value);
  if (Array.isArray(value)) return value.map((item) => redactObject(item, isInSecret));
  if (!isFields(value)) return value;
  // Lists of Secrets do not repeat the kind in their items.
  const isSecretObject = isInSecret || value['kind'] === 'Secret' || value['kind'] === 'SecretList';
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !omitted.has(key))
      .map(([key, item]) => {
        if (isSecretObject && (key === 'data' || key === 'stringData')) return [key, keysOnly(item)];
        if (key === 'env' && Array.isArray(item)) return [key, item.map(withoutValue)];
        if (key === objectKeys.config && typeof item === 'string') return [key, redactConfiguration(item)];
        return [key, redactObject(item, isSecretObject)];
      }),
  );
}

const keysOnly = (data: unknown): unknown =>
  isFields(data) ? Object.fromEntries(Object.keys(data).map((key) => [key, redacted])) : redacted;

/** Environment variables often contain passwords, whatever their names are. */
const withoutValue = (variable: unknown): unknown =>
  isFields(variable) && 'value' in variable ? { ...variable, value: redacted } : variable;

/**
 * Redacts the secret fields of a configuration. In an invalid configuration, a secret can be in any field, so all values
 * are redacted.
 */
function redactConfiguration(text: string): string {
  const yaml = readYAML(text);
  if (!yaml.ok) return redacted;
  const isValid = parseConfiguration(text).ok;
  const redact = (value: unknown, name: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => redact(item, name));
    if (isFields(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item, key)]));
    // Outside of a valid configuration, a secret of digits is a number.
    const isRedacted = isValid ? typeof value === 'string' && isSecret(name) : value !== null;
    return isRedacted ? redacted : value;
  };
  return toYAML(redact(yaml.content, ''));
}
