import { expect, test } from '@jest/globals';
import { fileError, readFlagFile } from '../../../src/config/flag-file.ts';

test('a file that cannot be read is reported with the flag, the path and the reason', async () => {
  await expect(readFlagFile('--ca-file', '/no/such')).rejects.toThrow(
    '--ca-file: cannot read /no/such: no such file or directory',
  );
});

test.each<[string, unknown]>([
  ['an error', new Error('it is not YAML')],
  ['a string', 'it is not YAML'],
])('a problem of a file that is thrown as %s is reported with the flag', (_, cause) => {
  expect(fileError('--kubeconfig', 'config.yaml', cause)).toMatchObject({
    message: '--kubeconfig: it is not YAML',
    cause,
  });
});
