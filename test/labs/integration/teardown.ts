/** Teardown after the last test file. */
export { endLab as default } from './setup.ts';
