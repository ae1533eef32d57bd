/**
 * Makes docs/configuration.md from the schema of the configuration (src/config/schema.ts): each key with its type, its default and what it
 * means.
 *
 * Run: node hack/update-configuration.ts [--check]; with --check nothing is written and a difference ends with 1.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { z } from 'zod';
import { platformConfiguration } from '../src/config/schema.ts';

const file = path.join(import.meta.dirname, '../docs/configuration.md');

interface Schema {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

const header = `# The configuration

<!-- Made by hack/update-configuration.ts from src/config/schema.ts: change it there. -->

What the server is told is the key \`platform.yaml\` of the ConfigMap \`platform-config\` in the namespace of the release; the Helm value
\`config\` becomes it. A change is live within a second. An invalid one is refused as a whole, with every problem named; the last good one stays
in force. Ports and files of certificates are flags (\`platform-apiserver --help\`).

A duration is written as in \`1h30m\`, a quantity of bytes as in \`64Mi\`. A list is marked by \`[]\`. What has no default may be left out unless
it is marked as needed (of a section that may be left out: needed if it is there).

\`\`\`yaml
apiVersion: config.platform.io/v1alpha1
kind: PlatformConfiguration
authentication:
  issuer: https://platform-apiserver.platform-system.svc
\`\`\`
`;

const isSecretRef = ({ properties = {} }: Schema): boolean => Object.keys(properties).join() === 'name,key';

const code = (value: unknown): string => `\`${typeof value === 'string' ? value || '""' : JSON.stringify(value)}\``;

/** In a word, with its bounds. */
function typeOf(schema: Schema): string {
  if (isSecretRef(schema)) return 'the `name` of a Secret and a `key` of its data';
  const { title, type, const: only, enum: values, minimum, maximum, maxLength, items } = schema;
  if (only !== undefined) return code(only);
  if (values !== undefined) return values.map(code).join(', ');
  if (title !== undefined) return title;
  const some = alternatives(schema);
  if (some.length > 0) return [...new Set(some.map(typeOf))].join(' or ');
  if (type === 'array') {
    const of = typeOf(items ?? {});
    return of === 'section' ? 'list' : `list of ${of}`;
  }
  if (type === 'string') return maxLength === undefined ? 'text' : `text of at most ${maxLength} characters`;
  if (type === 'integer') {
    const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
    return minimum === undefined || minimum < 0 ? 'number' : `number from ${minimum}${most}`;
  }
  return type === 'object' ? 'section' : (type ?? 'anything');
}

const alternatives = ({ anyOf, oneOf }: Schema): readonly Schema[] => anyOf ?? oneOf ?? [];

const either = (all: readonly Schema[]): Schema => ({ const: undefined, anyOf: all });

interface Row {
  readonly key: string;
  readonly schema: Schema;
  readonly needed: boolean;
}

/** All keys below, each once, where there are alternatives too. */
function rowsOf(prefix: string, schema: Schema): Row[] {
  const { properties = {}, required = [], items } = schema;
  const own = isSecretRef(schema)
    ? []
    : Object.entries(properties).flatMap(([name, one]) => {
        const key = `${prefix}.${name}${one.type === 'array' ? '[]' : ''}`;
        return [
          { key, schema: one, needed: required.includes(name) && one.default === undefined },
          ...rowsOf(key, one),
        ];
      });
  const others = [...alternatives(schema), ...(items === undefined ? [] : [items])].flatMap((one) =>
    rowsOf(prefix, one),
  );
  // What differs between alternatives is one or the other.
  return [...Map.groupBy([...own, ...others], ({ key }) => key).values()].map((those) => {
    const [row] = those as [Row];
    const types = new Set(those.map((one) => typeOf(one.schema)));
    return types.size === 1 ? row : { ...row, schema: { ...row.schema, ...either(those.map((one) => one.schema)) } };
  });
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const prose = (text: string): string => cell(text).replaceAll(/[*_<]/g, '\\$&');

function lineOf({ key, schema, needed }: Row): string {
  const { description } = schema;
  if (description === undefined && typeOf(schema) !== 'section' && schema.const === undefined)
    throw new Error(`${key} has no description in the schema`);
  const preset = needed
    ? 'needed'
    : schema.default === undefined || typeOf(schema) === 'section'
      ? ''
      : code(schema.default);
  return `| \`${key}\` | ${cell(typeOf(schema))} | ${cell(preset)} | ${prose(description ?? '')} |`;
}

const schema = z.toJSONSchema(platformConfiguration, { io: 'input', unrepresentable: 'any' }) as Schema;
const sections = Object.entries(schema.properties ?? {})
  .filter(([, one]) => one.type === 'object')
  .map(([name, one]) => {
    const rows = rowsOf(name, one).map(lineOf);
    return [
      `## ${name}`,
      ...(one.description === undefined ? [] : [`${one.description}.`]),
      ['| key | type | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n'),
    ].join('\n\n');
  });
const wanted = await format([header, ...sections].join('\n\n'), {
  ...(await resolveConfig(file)),
  parser: 'markdown',
});
const name = path.relative(process.cwd(), file);
let present = '';
try {
  present = readFileSync(file, 'utf8');
} catch {
  // It is made now.
}
if (present !== wanted) {
  if (process.argv.includes('--check')) {
    console.error(`${name} is not up to date: run make update`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, wanted);
    console.log(`wrote ${name}`);
  }
}
