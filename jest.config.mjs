/** Node strips the types itself, so a line of a test is a line of its source. */
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
      testMatch: ['<rootDir>/test/!(integration)/**/*.test.ts'],
      setupFilesAfterEnv: ['<rootDir>/test/assertions.ts'],
    },
    // One control plane for all files: its setup runs only when one of them does.
    {
      ...project,
      testMatch: ['<rootDir>/test/integration/**/*.test.ts'],
      globalSetup: '<rootDir>/test/labs/integration/setup.ts',
      globalTeardown: '<rootDir>/test/labs/integration/teardown.ts',
      setupFilesAfterEnv: ['<rootDir>/test/labs/integration/each-file.ts'],
    },
  ],
  coverageProvider: 'babel',
  collectCoverageFrom: ['src/**/*.ts'],
};
