import { env } from 'node:process';
import config from '../../jest.config.mjs';

/** Unit and conformance tests without those that start a real log store, or those that main.ts names. */
const all = ['test/unit/**/*.test.ts', 'test/conformance/*.test.ts'];
const tests = env.MUTANTS_TESTS === undefined ? all : [env.MUTANTS_TESTS];

export default {
  ...config.projects[0],
  rootDir: '../..',
  testMatch: tests.map((pattern) => `<rootDir>/${pattern}`),
};
