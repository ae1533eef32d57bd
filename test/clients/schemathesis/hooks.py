"""What a request of Schemathesis must not do to the server that other tests ask too."""

import os

import schemathesis

# Users whom others need, also under the name that everybody has for themselves.
PROTECTED = {"~", *os.environ["PROTECTED"].split(",")}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Nobody's account but the victim's is changed, deleted or logged out."""
    name = (path_parameters or {}).get("name")
    if name in PROTECTED and context.operation.method.upper() != "GET":
        return {**path_parameters, "name": "victim"}
    return path_parameters


@schemathesis.hook
def filter_case(context, case):
    """HTTP has everybody ignore headers that they do not know, and who may not see the checks of health by name does not learn their methods."""
    if any(name.lower().startswith("x-schemathesis-unknown") for name in case.headers or {}):
        return False
    # Which the client takes for a word of its own, and sends nothing.
    if "@@@SKIP_HEADER@@@" in (case.headers or {}).values():
        return False
    return case.method == "GET" or "{check}" not in case.path or "verbose" not in (case.query or {})


@schemathesis.hook
def before_call(context, case, kwargs):
    """Renames users and clients: wrong guesses at those in the examples would limit other tests for minutes."""
    if isinstance(case.body, dict):
        names = {key: f"fuzz-{case.body[key]}" for key in ("username", "client_id") if isinstance(case.body.get(key), str)}
        case.body = {**case.body, **names}
