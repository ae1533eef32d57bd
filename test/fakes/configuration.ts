import { parseConfiguration, formatProblem } from '../../src/config/parse.ts';
import type { PlatformConfiguration } from '../../src/config/schema.ts';

export const issuer = 'https://platform.example';

type Section = Readonly<Record<string, unknown>>;

/** The configuration that such a document makes, with the defaults for all else. Throws for an invalid one. */
export function configuration(sections: {
  authentication?: Section;
  requests?: Section;
  gateway?: Section;
}): PlatformConfiguration {
  // JSON is YAML.
  const parsed = parseConfiguration(
    JSON.stringify({
      apiVersion: 'config.platform.io/v1alpha1',
      kind: 'PlatformConfiguration',
      ...sections,
      authentication: { issuer, ...sections.authentication },
    }),
  );
  if (parsed.ok) return parsed.value;
  throw new Error(parsed.problems.map(formatProblem).join('\n'));
}
