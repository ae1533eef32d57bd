/** Fails each test that ends without an assertion, because a loop over an empty list proves nothing. */
import { beforeEach, expect } from '@jest/globals';

// oxlint-disable-next-line jest/no-standalone-expect -- it applies to the test that follows
beforeEach(() => expect.hasAssertions());
