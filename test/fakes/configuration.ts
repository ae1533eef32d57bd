import { parseConfiguration, formatProblem } from '../../src/config/parse.ts';
import type { PlatformConfiguration } from '../../src/config/schema.ts';

export const issuer = 'https://platform.example';

type Section = Readonly<Record<string, unknown>>;

interface Sections {
  readonly authentication?: Section;
  readonly requests?: Section;
  readonly gateway?: Section;
}

/** Returns a document with these sections. The document is in JSON, which is also YAML. */
export const configurationText = (sections: Sections): string =>
  JSON.stringify({
    apiVersion: 'config.platform.io/v1alpha1',
    kind: 'PlatformConfiguration',
    ...sections,
    authentication: { issuer, ...sections.authentication },
  });

/** Parses a document with these sections. Throws if it is invalid. */
export function configuration(sections: Sections): PlatformConfiguration {
  const parsed = parseConfiguration(configurationText(sections));
  if (parsed.ok) return parsed.value;
  throw new Error(parsed.problems.map(formatProblem).join('\n'));
}
