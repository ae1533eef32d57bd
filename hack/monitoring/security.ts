/** The dashboard of logins, tokens and refused requests, for the person who investigates an attack. */
import { chart, dashboard, stat, type Row } from './dashboard.ts';
import { own, rate, sumBy } from './queries.ts';

const failures = own('logins_total', 'outcome!="LoggedIn"');

/** Returns a query for the increase of a counter in the time range of the dashboard. */
const count = (selector: string): string => `sum(increase(${selector}[$__range]))`;

const summary: Row = {
  title: 'In the selected time range',
  panels: [
    stat(
      { title: 'Logins', description: 'Successful logins of users.', unit: 'short' },
      count(own('logins_total', 'outcome="LoggedIn"')),
      ['text'],
    ),
    stat(
      {
        title: 'Failed logins',
        description:
          'Logins with an outcome other than LoggedIn, including logins refused because of earlier failures.',
        unit: 'short',
      },
      count(failures),
      ['text'],
    ),
    stat(
      {
        title: 'Refused attempts',
        description:
          'Authentication attempts refused because of earlier failures. Many refused attempts mean an attack, or a client with an old secret.',
        unit: 'short',
      },
      count(own('login_attempts_limited_total')),
      ['green', [20, 'orange']],
    ),
    stat(
      {
        title: 'Reused tokens',
        description: 'Sessions that were revoked because a token was used twice. The token may have been stolen.',
        unit: 'short',
      },
      count(own('token_reuses_total')),
      ['green', [0.5, 'red']],
    ),
    stat(
      { title: 'Lost audit events', description: 'Events that are missing from the audit log.', unit: 'short' },
      count(own('audit_events_dropped_total')),
      ['green', [0.5, 'red']],
    ),
    stat(
      {
        title: 'Configuration problems',
        description: 'Problems of the latest configuration, and unresolved references.',
        unit: 'short',
      },
      `max(${own('configuration_problems')})`,
      ['green', [1, 'red']],
    ),
  ],
};

const logins: Row = {
  title: 'Logins',
  panels: [
    chart(
      {
        title: 'Failed logins by outcome',
        description:
          'Many unknown users mean that somebody guesses names. Many wrong passwords mean that somebody guesses the passwords of known names.',
        unit: 'ops',
      },
      { '{{outcome}}': sumBy('outcome', rate(failures)) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Failed logins by client',
        description: 'OAuth client through which the logins fail. Logins on the pages of the server have no client.',
        unit: 'ops',
      },
      { '{{client}} {{grant}}': sumBy('client, grant', rate(failures)) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Refused attempts by secret',
        description: 'Authentication attempts refused per second because of earlier failures, by the kind of secret.',
        unit: 'ops',
      },
      { '{{guesses}}': sumBy('guesses', rate(own('login_attempts_limited_total'))) },
      { isStacked: true },
    ),
  ],
};

const tokens: Row = {
  title: 'Tokens',
  panels: [
    chart(
      {
        title: 'Issued tokens by client',
        description: 'Access tokens issued per second, by OAuth client.',
        unit: 'ops',
      },
      { '{{client}} {{grant}}': sumBy('client, grant', rate(own('tokens_issued_total'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Refused token requests by client',
        description:
          'Token requests refused per second. Many refused requests of one client mean that its secret or its tokens are wrong.',
        unit: 'ops',
      },
      { '{{client}} {{error}}': sumBy('client, error', rate(own('token_requests_refused_total'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Reused tokens by kind',
        description: 'Tokens used twice, per second. The server revoked the sessions of these tokens.',
        unit: 'ops',
      },
      { '{{token}}': sumBy('token', rate(own('token_reuses_total'))) },
    ),
  ],
};

const requests: Row = {
  title: 'Requests',
  panels: [
    chart(
      {
        title: 'Refused requests by status',
        description: '401: the token is missing or invalid. 403: a right is missing. 429: a limit is reached.',
        unit: 'reqps',
      },
      { '{{code}}': sumBy('code', rate(own('requests_total', 'code=~"401|403|429"'))) },
      { isStacked: true },
    ),
    chart(
      {
        title: 'Forbidden requests by resource',
        description:
          'Requests per second with status 403, for the ten resources with the most. A user or a program may be exploring the cluster.',
        unit: 'reqps',
      },
      {
        '{{verb}} {{resource}}': `topk(10, ${sumBy('verb, resource', rate(own('requests_total', 'code="403"')))})`,
      },
    ),
    chart(
      {
        title: 'Requests without a user',
        description: 'Requests in progress that are anonymous, wait for authentication, or are incomplete logins.',
        unit: 'short',
      },
      { '{{kind}}': sumBy('kind', own('requests_in_flight', 'kind=~"anonymous|authentication|body"')) },
      { isStacked: true },
    ),
  ],
};

export const security = dashboard(
  {
    uid: 'platform-apiserver-security',
    title: 'platform-apiserver / Logins and security',
    description: 'Logins, tokens and refused requests of platform-apiserver.',
  },
  [summary, logins, tokens, requests],
);
