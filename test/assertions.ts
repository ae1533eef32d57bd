/** A test that ends without an assertion fails: a loop over nothing proves nothing. */
import { beforeEach, expect } from '@jest/globals';

// oxlint-disable-next-line jest/no-standalone-expect -- it applies to the test that follows
beforeEach(() => expect.hasAssertions());
