import { Profiler, profileKinds } from '../runtime/profiler.ts';
import { authorizedByPath } from './access.ts';
import { defineRoute } from './define-route.ts';
import { profilesPath } from './filters/request-info.ts';
import { integerParameter, queryParameters } from './request/parameters.ts';
import { write } from './response/write.ts';
import { json, type Route } from './route.ts';
import { anyObject, described } from './schema.ts';

const maxSeconds = 60;
const query = queryParameters({
  seconds: described(
    `Duration of the profile, 1 to ${maxSeconds} seconds`,
    integerParameter({ min: 1, max: maxSeconds }, `an integer from 1 to ${maxSeconds}`),
  ),
});

/** Returns the routes of the profiles of this process. */
export function profileRoutes(): readonly Route[] {
  const profiler = new Profiler();
  const profileRoute = (kind: keyof typeof profileKinds, summary: string, description: string): Route =>
    defineRoute({
      method: 'get',
      path: `${profilesPath}${kind}`,
      summary,
      description: `${description} The response arrives when the profile ends. The server records one profile at a time. Requires the right to \`get\` the path.`,
      access: authorizedByPath,
      query,
      responses: json(anyObject, `The profile, for a file that ends in \`.${kind}profile\``),
      async handler({ req, res, context: { signal }, query: { seconds } }) {
        const profile = await profiler.record(profileKinds[kind], seconds * 1_000, signal);
        await write(req, res, {
          contentType: 'application/json',
          body: [Buffer.from(JSON.stringify(profile))],
          headers: { 'Content-Disposition': `attachment; filename="platform-apiserver.${kind}profile"` },
        });
      },
    });
  return [
    profileRoute(
      'cpu',
      'Record a CPU profile',
      'Records which functions of the server use the CPU, in the format of Chrome DevTools.',
    ),
    profileRoute(
      'heap',
      'Record a heap profile',
      'Records which functions allocate memory that is still in use at the end, in the format of Chrome DevTools. Contains sizes, but no values.',
    ),
  ];
}
