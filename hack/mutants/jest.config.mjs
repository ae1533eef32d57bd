import config from '../../jest.config.mjs';

/** Unit and conformance tests without those that start a real log store, or those that main.ts names. */
const all = ['test/unit/**/*.test.ts', 'test/conformance/*.test.ts'];
const tests = process.env.MUTANTS_TESTS?.split(' ') ?? all;

export default {
  ...config.projects[0],
  rootDir: '../..',
  testMatch: tests.map((pattern) => `<rootDir>/${pattern}`),
};
