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
    """HTTP has everybody ignore headers that they do not know."""
    return not any(name.lower().startswith("x-schemathesis-unknown") for name in case.headers or {})
