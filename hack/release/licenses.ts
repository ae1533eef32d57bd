/** Licences of the packages in a release. */
import type { ShippedPackage } from '../build.ts';

/** Licences that allow distribution together with a program under Apache-2.0, and require at most a notice. */
const allowed = new Set(['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']);

/** Returns a message for each package whose licence is not allowed. */
export const licenseProblems = (packages: readonly ShippedPackage[]): string[] =>
  packages
    .filter(({ license }) => !allowed.has(license))
    .map(
      ({ name, version, license }) =>
        `${name} ${version}: the licence ${license} is not one of ${[...allowed].join(', ')} (hack/release/licenses.ts)`,
    );
