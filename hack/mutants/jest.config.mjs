import config from '../../jest.config.mjs';

/** Unit and conformance tests, without those that start a real log store. */
export default {
  ...config.projects[0],
  rootDir: '../..',
  testMatch: ['<rootDir>/test/unit/**/*.test.ts', '<rootDir>/test/conformance/*.test.ts'],
};
