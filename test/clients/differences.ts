/**
 * Differences between the aggregated nodes and the core nodes that the programs of this folder report, with reasons.
 * test/integration/clients.test.ts verifies that the list is complete. Differences in the name of the API group and in
 * resource versions do not count.
 */
export interface Difference {
  readonly case: string;
  /** The only way to reach the server on which the difference is visible. Default: both ways. */
  readonly via?: 'aggregated' | 'direct';
  /** Path within the case's result; '' for the whole. */
  readonly at: string;
  readonly core: unknown;
  readonly ours: unknown;
  readonly reason: string;
}

const because = (reason: string, found: readonly Omit<Difference, 'reason'>[]): Difference[] =>
  found.map((difference) => ({ ...difference, reason }));

export const differences: readonly Difference[] = [
  ...because(
    'Ranges such as application/* are supported (RFC 9110 section 12.5.1); kube-apiserver supports only */*.',
    [
      {
        case: 'accept/list any application',
        at: '',
        core: '406 application/json NotAcceptable',
        ours: '200 application/json NodeList',
      },
      {
        case: 'accept/one any application',
        at: '',
        core: '406 application/json NotAcceptable',
        ours: '200 application/json Node',
      },
      {
        case: 'watch/accept any application',
        at: '',
        core: '406 application/json NotAcceptable',
        ours: '200 application/json nothing',
      },
    ],
  ),
  ...because(
    'Protobuf is not supported: clients that also accept JSON, as all Kubernetes clients do, get JSON; others get 406.',
    [
      {
        case: 'accept/list metadata informer',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf protobuf',
        ours: '200 application/json PartialObjectMetadataList',
      },
      {
        case: 'accept/list protobuf',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf protobuf',
        ours: '406 application/json NotAcceptable',
      },
      {
        case: 'accept/list protobuf or json',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf protobuf',
        ours: '200 application/json NodeList',
      },
      {
        case: 'accept/one protobuf',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf protobuf',
        ours: '406 application/json NotAcceptable',
      },
      {
        case: 'accept/one protobuf or json',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf protobuf',
        ours: '200 application/json Node',
      },
      {
        case: 'watch/accept metadata informer',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf;stream=watch nothing',
        ours: '200 application/json nothing',
      },
      {
        case: 'watch/accept protobuf',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf;stream=watch nothing',
        ours: '406 application/json NotAcceptable',
      },
      {
        case: 'watch/accept protobuf or json',
        at: '',
        core: '200 application/vnd.kubernetes.protobuf;stream=watch nothing',
        ours: '200 application/json nothing',
      },
    ],
  ),
  ...because(
    'A weight of 0 means that the type is not accepted (RFC 9110 section 12.4.2); kube-apiserver ignores it.',
    [
      {
        case: 'accept/list no json',
        at: '',
        core: '200 application/json NodeList',
        ours: '406 application/json NotAcceptable',
      },
      {
        case: 'accept/one no json',
        at: '',
        core: '200 application/json Node',
        ours: '406 application/json NotAcceptable',
      },
      {
        case: 'watch/accept no json',
        at: '',
        core: '200 application/json nothing',
        ours: '406 application/json NotAcceptable',
      },
    ],
  ),
  ...because(
    'The aggregated nodes are read-only and have no short name: `kubectl get no` still means the core nodes.',
    [
      {
        case: 'discovery/resource',
        at: '',
        core: 'Node nodes node namespaced=false [create delete deletecollection get list patch update watch] [no]',
        ours: 'Node nodes node namespaced=false [get list watch] []',
      },
      { case: 'python/verbs', at: '/0', core: 'create', ours: 'get' },
      { case: 'python/verbs', at: '/1', core: 'delete', ours: 'list' },
      { case: 'python/verbs', at: '/2', core: 'deletecollection', ours: 'watch' },
      { case: 'python/verbs', at: '/3', core: 'get', ours: undefined },
      { case: 'python/verbs', at: '/4', core: 'list', ours: undefined },
      { case: 'python/verbs', at: '/5', core: 'patch', ours: undefined },
      { case: 'python/verbs', at: '/6', core: 'update', ours: undefined },
      { case: 'python/verbs', at: '/7', core: 'watch', ours: undefined },
    ],
  ),
  ...because('managedFields are not cached: they are a third of a node, and useful only to writers.', [
    { case: 'get/managedFields', at: '', core: true, ours: false },
  ]),
  // The comparison replaces resources.platform.io/v1alpha3 by v1 in all texts, also within paths.
  ...because('404 for an unknown path names the nearest one.', [
    {
      case: 'get/node-3/nothing',
      at: '/1/message',
      core: 'the server could not find the requested resource',
      ours: 'the server could not find the requested resource; the nearest path is /apis/v1/nodes/node-3',
    },
  ]),
  ...because('There are no subresources: status is part of the node.', [
    { case: 'get/node-3/status', at: '/0', core: 200, ours: 404 },
    {
      case: 'get/node-3/status',
      at: '/1',
      core: 'Node',
      ours: {
        code: 404,
        message: 'the server could not find the requested resource; the nearest path is /apis/v1/nodes/node-3',
        reason: 'NotFound',
      },
    },
  ]),
  ...because(
    'Items of a list have kind and apiVersion, which kube-apiserver omits: the bytes of a node are the same everywhere.',
    [
      { case: 'list/metadata', at: '/kinds of items/ ', core: true, ours: undefined },
      {
        case: 'list/metadata',
        at: '/kinds of items/meta.k8s.io/v1 PartialObjectMetadata',
        core: undefined,
        ours: true,
      },
      { case: 'list/typed', at: '/kinds of items/ ', core: true, ours: undefined },
      { case: 'list/typed', at: '/kinds of items/v1 Node', core: undefined, ours: true },
    ],
  ),
  ...because('A continue token is returned only if more items exist, so that no client requests an empty chunk.', [
    { case: 'list/selected kubernetes.io/hostname=node-4', at: '/continue', core: true, ours: false },
  ]),
  ...because('The aggregated nodes are read-only: 405 whatever the body, and whether the node exists or not.', [
    { case: 'method/DELETE /nobody?dryRun=All', at: '', core: '404 NotFound', ours: '405 MethodNotAllowed' },
    {
      case: 'method/DELETE ?dryRun=All&labelSelector=nothing',
      at: '',
      core: '200 <nil>',
      ours: '405 MethodNotAllowed',
    },
    { case: 'method/PATCH /nobody?dryRun=All', at: '', core: '415 UnsupportedMediaType', ours: '405 MethodNotAllowed' },
    {
      case: 'method/POST ?dryRun=All&labelSelector=nothing',
      at: '',
      core: '400 BadRequest',
      ours: '405 MethodNotAllowed',
    },
    { case: 'method/PUT /nobody?dryRun=All', at: '', core: '400 BadRequest', ours: '405 MethodNotAllowed' },
    { case: 'method/patch by client-go', at: '', core: 'NotFound', ours: 'MethodNotAllowed' },
  ]),
  ...because('HEAD returns the same as GET without the body (RFC 9110 section 9.3.2).', [
    { case: 'method/HEAD /nobody?dryRun=All', at: '', core: '405', ours: '404' },
    { case: 'method/HEAD ?dryRun=All&labelSelector=nothing', at: '', core: '405', ours: '200' },
  ]),
  ...because('A 405 lists the supported methods (RFC 9110 section 15.5.6).', [
    { case: 'method/allowed', at: '', core: '', ours: 'GET, HEAD' },
  ]),
  ...because('The message speaks of the token, not of the decoder.', [
    {
      case: 'query/continue=x',
      at: '/1/message',
      core: 'invalid continue token: continue key is not valid: illegal base64 data at input byte 0',
      ours: 'invalid continue token: continue key is not valid: it is not JSON',
    },
    {
      case: 'python/refused',
      at: '/2/message',
      core: 'invalid continue token: continue key is not valid: illegal base64 data at input byte 0',
      ours: 'invalid continue token: continue key is not valid: it is not base64url',
    },
  ]),
  ...because('The message has the same form for every error of a selector.', [
    {
      case: 'query/labelSelector=$',
      at: '/1/message',
      core: "unable to parse requirement: <nil>: Invalid value: \"$\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      ours: "unable to parse requirement: Invalid value: \"$\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc')",
    },
    {
      case: 'query/labelSelector=a in',
      at: '/1/message',
      core: "unable to parse requirement: found '' expected: '('",
      ours: "unable to parse requirement: found '', expected: '('",
    },
    {
      case: 'query/labelSelector=a>x',
      at: '/1/message',
      core: "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
      ours: "unable to parse requirement: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    },
  ]),
  ...because('The message names the parameter.', [
    {
      case: 'query/limit=',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "": invalid syntax',
      ours: 'limit: "" is not a 64-bit integer',
    },
    {
      case: 'query/limit=1.5',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "1.5": invalid syntax',
      ours: 'limit: "1.5" is not a 64-bit integer',
    },
    {
      case: 'query/limit=9223372036854775808',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "9223372036854775808": value out of range',
      ours: 'limit: "9223372036854775808" is not a 64-bit integer',
    },
    {
      case: 'query/limit=x',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "x": invalid syntax',
      ours: 'limit: "x" is not a 64-bit integer',
    },
    {
      case: 'query/timeoutSeconds=x',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "x": invalid syntax',
      ours: 'timeoutSeconds: "x" is not a 64-bit integer',
    },
    {
      case: 'query/watch=true&limit=x',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "x": invalid syntax',
      ours: 'limit: "x" is not a 64-bit integer',
    },
    {
      case: 'query/watch=true&timeoutSeconds=x',
      at: '/1/message',
      core: 'strconv.ParseInt: parsing "x": invalid syntax',
      ours: 'timeoutSeconds: "x" is not a 64-bit integer',
    },
  ]),
  ...because('The message about an invalid request names no function.', [
    {
      case: 'query/resourceVersion=-1',
      at: '/1/message',
      core: 'invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax',
      ours: 'invalid resource version: "-1"',
    },
    {
      case: 'query/resourceVersion=18446744073709551616',
      at: '/1/message',
      core: 'invalid resource version: resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range',
      ours: 'invalid resource version: "18446744073709551616"',
    },
  ]),
  ...because('An invalid request is not a 500, and the message names no function.', [
    {
      case: 'query/resourceVersion=x',
      at: '/1/message',
      core: 'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
      ours: 'invalid resource version: "x"',
    },
    {
      case: 'query/watch=true&timeoutSeconds=1&resourceVersion=x',
      at: '/0',
      core: '500 application/json ',
      ours: '400 application/json ',
    },
    { case: 'query/watch=true&timeoutSeconds=1&resourceVersion=x', at: '/1/code', core: 500, ours: 400 },
    {
      case: 'query/watch=true&timeoutSeconds=1&resourceVersion=x',
      at: '/1/message',
      core: 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
      ours: 'invalid resource version: "x"',
    },
    { case: 'query/watch=true&timeoutSeconds=1&resourceVersion=x', at: '/1/reason', core: '', ours: 'BadRequest' },
    { case: 'version/get x', at: '/code', core: 500, ours: 400 },
    {
      case: 'version/get x',
      at: '/message',
      core: 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax',
      ours: 'invalid resource version: "x"',
    },
    { case: 'version/get x', at: '/reason', core: '', ours: 'BadRequest' },
    { case: 'python/watched_from_nowhere', at: '', core: 500, ours: 400 },
  ]),
  ...because('A negative duration is rejected; kube-apiserver ignores it.', [
    { case: 'query/timeout=-1s', at: '/0', core: '200 application/json ', ours: '400 application/json ' },
    {
      case: 'query/timeout=-1s',
      at: '/1',
      core: 'NodeList',
      ours: {
        code: 400,
        message: 'invalid timeout specified in the request URL: "-1s" is not a duration such as "32s"',
        reason: 'BadRequest',
      },
    },
  ]),
  ...because(
    'The message shows an example of a duration. Through the aggregator, kube-apiserver itself rejects the request.',
    [
      {
        case: 'query/timeout=1',
        via: 'direct',
        at: '/1/message',
        core: 'invalid timeout specified in the request URL - time: missing unit in duration "1"',
        ours: 'invalid timeout specified in the request URL: "1" is not a duration such as "32s"',
      },
      {
        case: 'query/timeout=x',
        via: 'direct',
        at: '/1/message',
        core: 'invalid timeout specified in the request URL - time: invalid duration "x"',
        ours: 'invalid timeout specified in the request URL: "x" is not a duration such as "32s"',
      },
    ],
  ),
  ...because(
    'The message of a 406 lists the supported media types in one form, and the kind under its client-side name.',
    [
      {
        case: 'refused//node-3 as application/json;as=Table;g=meta.k8s.io;v=v2',
        at: '/message',
        core: 'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf',
        ours: 'only the following media types are accepted: application/json, application/yaml',
      },
      {
        case: 'refused//node-4 as application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
        at: '/message',
        core: 'you requested PartialObjectMetadataList, but the requested object is not a list (*core.Node)',
        ours: 'you requested PartialObjectMetadataList, but the requested object is not a list (Node)',
      },
      {
        case: 'refused/?limit=1 as text/html',
        at: '/message',
        core: '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch',
        ours: 'only the following media types are accepted: application/json, application/yaml',
      },
      {
        case: 'refused/?limit=2 as application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
        at: '/message',
        core: 'you requested PartialObjectMetadata, but the requested object is a list (*core.NodeList)',
        ours: 'you requested PartialObjectMetadata, but the requested object is a list (NodeList)',
      },
    ],
  ),
];
