"""Keeps requests of Schemathesis from disturbing other tests of the same server."""

import os

import schemathesis

# Users that other tests need, including the alias of the caller.
PROTECTED = {"~", *os.environ["PROTECTED"].split(",")}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Replaces the names of users that other tests need with `victim`, except in reads."""
    name = (path_parameters or {}).get("name")
    if name in PROTECTED and context.operation.method.upper() != "GET":
        return {**path_parameters, "name": "victim"}
    return path_parameters


@schemathesis.hook
def filter_case(context, case):
    """Drops cases that the server need not reject.

    HTTP ignores unknown headers, and a health check with `verbose` does not report which methods it supports.
    """
    if any(name.lower().startswith("x-schemathesis-unknown") for name in case.headers or {}):
        return False
    # The client interprets this value itself and does not send it.
    if "@@@SKIP_HEADER@@@" in (case.headers or {}).values():
        return False
    return case.method == "GET" or "{check}" not in case.path or "verbose" not in (case.query or {})


@schemathesis.hook
def before_call(context, case, kwargs):
    """Renames users and clients: failed logins with names from the examples would block other tests for minutes."""
    if isinstance(case.body, dict):
        names = {key: f"fuzz-{case.body[key]}" for key in ("username", "client_id") if isinstance(case.body.get(key), str)}
        case.body = {**case.body, **names}
