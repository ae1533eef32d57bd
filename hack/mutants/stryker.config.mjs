/** How StrykerJS changes the code and runs the tests; main.ts adds which files. */
export default {
  testRunner: 'jest',
  plugins: ['@stryker-mutator/jest-runner'],
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  jest: { configFile: 'hack/mutants/jest.config.mjs', enableFindRelatedTests: true },
  coverageAnalysis: 'perTest',
  // Texts are for people, and whole modules are no single rule.
  mutator: { excludedMutations: ['StringLiteral'] },
  ignoreStatic: true,
  // jest keeps part of each run in memory.
  maxTestRunnerReuse: 25,
  concurrency: 1,
  timeoutMS: 20_000,
  dryRunTimeoutMinutes: 60,
  // Files that no test reads.
  ignorePatterns: ['dist', 'coverage', '.cluster', 'charts/*/charts'],
  tempDirName: 'dist/mutants',
  cleanTempDir: 'always',
  incremental: true,
  reporters: ['progress-append-only'],
  checkers: [],
  disableTypeChecks: false,
  tsconfigFile: 'none',
  allowConsoleColors: false,
};
