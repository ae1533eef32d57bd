/** Node strips the types itself, so a line of a test is a line of its source. */
export default {
  testEnvironment: 'node',
  testMatch: ['**/*.test.ts'],
  transform: { '\\.ts$': '<rootDir>/test/strip-types.ts' },
  extensionsToTreatAsEsm: ['.ts'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'json'],
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cluster/'],
  coverageProvider: 'babel',
  collectCoverageFrom: ['src/**/*.ts'],
};
