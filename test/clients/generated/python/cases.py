"""What a program in Python does with clients made by openapi-python-client.

`cases.py URL` reads who logs in from standard input and prints what it saw as one JSON object, comparable with those of the other
languages. The packages platform_api and custom_resources_api are made beside a copy of this file.
"""

import json
import ssl
import sys

from custom_resources_api.api.iam_platform_io_v_1_alpha_2 import (
    create_iam_platform_io_v1_alpha_2_user as create_custom_user,
    delete_iam_platform_io_v1_alpha_2_user as delete_custom_user,
    list_iam_platform_io_v1_alpha_2_user as list_custom_users,
    patch_iam_platform_io_v1_alpha_2_user as patch_custom_user,
    read_iam_platform_io_v1_alpha_2_user as read_custom_user,
)
from custom_resources_api.client import AuthenticatedClient as CustomResources
from custom_resources_api.models import (
    IoPlatformIamV1Alpha2User,
    IoPlatformIamV1Alpha2UserList,
    IoPlatformIamV1Alpha2UserSpec,
    Patch,
)
from custom_resources_api.models import ObjectMeta as CustomObjectMeta
from custom_resources_api.models import Status as CustomStatus
from platform_api.api.iam import (
    create_iam_user,
    delete_iam_user,
    get_iam_whoami,
    list_iam_users,
    patch_iam_user,
)
from platform_api.api.logging import get_logging_logs
from platform_api.api.oauth import post_oauth_token
from platform_api.api.resources import get_node, list_nodes
from platform_api.client import AuthenticatedClient, Client
from platform_api.models import (
    LogQueryRecords,
    LogQueryStatistics,
    Node,
    NodeList,
    OAuthError,
    ObjectMeta,
    Status,
    TokenRequest,
    TokenResponse,
    User,
    UserList,
    UserPatch,
    UserSpec,
    UserSpecPatch,
    WhoAmI,
)

URL = sys.argv[1]
KNOWN = json.load(sys.stdin)
# Whom it trusts is said by SSL_CERT_FILE.
TRUST = ssl.create_default_context()
OPEN = Client(base_url=URL, verify_ssl=TRUST)


def need(kind, answer):
    """The answer, which must be of a kind."""
    if not isinstance(answer, kind):
        raise SystemExit(f"this is no {kind.__name__}: {answer}")
    return answer


def login(username, password):
    body = TokenRequest(
        grant_type="password", username=username, password=password, client_id="platform", client_secret="platform"
    )
    return need(TokenResponse, post_oauth_token.sync(client=OPEN, body=body)).access_token


def signed_in(kind, token):
    return kind(base_url=URL, token=token, verify_ssl=TRUST)


ADMIN_TOKEN = login(KNOWN["username"], KNOWN["password"])
PLATFORM = signed_in(AuthenticatedClient, ADMIN_TOKEN)
CLUSTER = signed_in(CustomResources, ADMIN_TOKEN)


def shown(value):
    return value or None


def refused(status):
    """Of whichever document."""
    if not isinstance(status, (Status, CustomStatus)):
        raise SystemExit(f"this is no refusal: {status}")
    return [status.code, status.reason, shown(status.details.kind), shown(status.details.name)]


def wrong_password():
    body = TokenRequest(
        grant_type="password", username="nobody-of-python", password="x", client_id="platform", client_secret="platform"
    )
    answer = post_oauth_token.sync_detailed(client=OPEN, body=body)
    return [answer.status_code, need(OAuthError, answer.parsed).error]


def nodes():
    page = need(NodeList, list_nodes.sync(client=PLATFORM, sort_by="name", ascending=True, limit=2, page=2))
    selected = need(
        NodeList,
        list_nodes.sync(
            client=PLATFORM,
            label_selector="kubernetes.io/os=linux,!broken",
            names="node-1,no-such",
            fields="metadata.labels",
        ),
    )
    return {
        "page": [[node.metadata.name for node in page.items], page.total_items],
        "selected": [
            [node.metadata.name, node.metadata.labels["kubernetes.io/os"], shown(node.status)]
            for node in selected.items
        ],
    }


def node():
    found = need(Node, get_node.sync("node-1", client=PLATFORM))
    (ready,) = [condition.status for condition in found.status.conditions if condition.type_ == "Ready"]
    return {
        "found": [found.kind, found.metadata.name, ready, found.status.node_info.operating_system],
        "missing": refused(get_node.sync("no-such", client=PLATFORM)),
    }


def forbidden():
    rightless = signed_in(AuthenticatedClient, login(KNOWN["rightless"], KNOWN["rightlessPassword"]))
    return refused(list_nodes.sync(client=rightless))


def user():
    name = "made-by-python"
    body = User(
        kind="User",
        api_version="iam.platform.io/v1alpha2",
        metadata=ObjectMeta(name=name),
        spec=UserSpec(display_name="One", email=f"{name}@example.com", groups=["keepers"]),
    )
    made = need(User, create_iam_user.sync(client=PLATFORM, body=body))
    patch = UserPatch(spec=UserSpecPatch(display_name="Two", email=None))
    patched = need(User, patch_iam_user.sync(name, client=PLATFORM, body=patch))
    again = create_iam_user.sync(client=PLATFORM, body=body)
    users = need(UserList, list_iam_users.sync(client=PLATFORM, name=name))
    gone = delete_iam_user.sync(name, client=PLATFORM)
    return {
        "made": [made.spec.display_name, made.spec.email, made.spec.groups, made.spec.state],
        "patched": [patched.spec.display_name, shown(patched.spec.email)],
        "again": refused(again),
        "all": [[one.metadata.name for one in users.items], users.total_items],
        "gone": gone.kind,
    }


def who_am_i():
    status = need(WhoAmI, get_iam_whoami.sync(client=PLATFORM)).status
    return [status.user_info.username, status.user_info.groups, status.user.password_change_required]


def logs():
    namespaces = KNOWN["namespace"]
    found = get_logging_logs.sync(client=PLATFORM, namespaces=namespaces, log_query="SECOND", size=1)
    query = need(LogQueryRecords, found).query
    counted = get_logging_logs.sync(client=PLATFORM, namespaces=namespaces, operation="statistics")
    statistics = need(LogQueryStatistics, counted).statistics
    wrong = get_logging_logs.sync_detailed(client=PLATFORM, start_time=1_795_341_600_000)
    status = need(Status, wrong.parsed)
    return {
        "query": [query.total, [[record.container, record.log] for record in query.records]],
        "statistics": [statistics.containers, statistics.logs],
        "wrong": [None, status.reason, status.details.causes[0].field],
    }


def custom_resource():
    """The same User as kube-apiserver has it, through the gateway."""
    name = "custom-by-python"
    body = IoPlatformIamV1Alpha2User(
        api_version="iam.platform.io/v1alpha2",
        kind="User",
        metadata=CustomObjectMeta(name=name),
        spec=IoPlatformIamV1Alpha2UserSpec(display_name="Three"),
    )
    made = need(IoPlatformIamV1Alpha2User, create_custom_user.sync(client=CLUSTER, body=body))
    listed = list_custom_users.sync(client=CLUSTER, field_selector=f"metadata.name={name}")
    patch = Patch.from_dict({"spec": {"state": "Disabled"}})
    patched = need(IoPlatformIamV1Alpha2User, patch_custom_user.sync(name, client=CLUSTER, body=patch))
    gone = need(CustomStatus, delete_custom_user.sync(name, client=CLUSTER))
    return {
        "made": [made.kind, made.spec.display_name, made.spec.state],
        "listed": [one.metadata.name for one in need(IoPlatformIamV1Alpha2UserList, listed).items],
        "patched": patched.spec.state,
        "gone": gone.status,
        "missing": refused(read_custom_user.sync(name, client=CLUSTER)),
    }


print(
    json.dumps(
        {
            "wrong password": wrong_password(),
            "nodes": nodes(),
            "node": node(),
            "forbidden": forbidden(),
            "user": user(),
            "who am I": who_am_i(),
            "logs": logs(),
            "custom resource": custom_resource(),
        }
    )
)
