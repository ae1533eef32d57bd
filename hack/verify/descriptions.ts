import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lintFromString, loadConfig } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { root } from './checks.ts';

/**
 * Validates the descriptions in api/ with the schemas of their versions and the rules of redocly.yaml, and returns the
 * problems.
 */
export async function descriptions(): Promise<string[]> {
  const config = await loadConfig({ configPath: join(root, 'redocly.yaml') });
  const folder = join(root, 'api');
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  const problems = files.map(async (file) => {
    const source = readFileSync(join(folder, file), 'utf8');
    const { valid, errors } = await new Validator().validate(JSON.parse(source) as Record<string, unknown>);
    const found = await lintFromString({ source, absoluteRef: join(folder, file), config });
    return [
      ...(valid ? [] : [`api/${file}: ${JSON.stringify(errors)}`]),
      ...found.map(
        ({ ruleId, message, location: [at] }) => `api/${file}: ${ruleId}: ${message} (${at?.pointer ?? ''})`,
      ),
    ];
  });
  return (await Promise.all(problems)).flat();
}
