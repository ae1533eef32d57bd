/** Node.js strips the types and keeps line numbers, so that stack traces match the source. */
const project = {
  testEnvironment: 'node',
  transform: { '\\.ts$': '<rootDir>/test/strip-types.ts' },
  extensionsToTreatAsEsm: ['.ts'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'json'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cluster/'],
};

export default {
  testSequencer: '<rootDir>/test/sequencer.ts',
  projects: [
    {
      ...project,
      testMatch: ['<rootDir>/test/!(integration|ingress|monitoring)/**/*.test.ts'],
      setupFilesAfterEnv: ['<rootDir>/test/assertions.ts'],
    },
    // All files share one control plane. Its setup runs only if one of them runs.
    {
      ...project,
      testMatch: ['<rootDir>/test/{integration,ingress,monitoring}/**/*.test.ts'],
      globalSetup: '<rootDir>/test/labs/integration/setup.ts',
      globalTeardown: '<rootDir>/test/labs/integration/teardown.ts',
      setupFilesAfterEnv: ['<rootDir>/test/labs/integration/each-file.ts'],
    },
  ],
  coverageProvider: 'babel',
  collectCoverageFrom: ['src/**/*.ts'],
};
