"""Cases for users of the official Python client.

Run as `cases.py KUBECONFIG KUBECONFIG_OF_OUR_GATEWAY KUBECONFIG_OF_OUR_PORT`.
Each case runs against core nodes, at kube-apiserver and through the gateway, and against nodes.resources.platform.io,
through the aggregator and at the port of platform-apiserver. The program prints one JSON line for each case and target.
"""

import json
import ssl
import sys

import websocket
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP = "resources.platform.io"
VERSION = "v1alpha3"
OWN = "own-of-python"


class Target:
    """A collection of nodes with its address."""

    def __init__(self, name, kubeconfig, ours):
        self.name = name
        self.ours = ours
        self.api_version = f"{GROUP}/{VERSION}" if ours else "v1"
        self.client = config.new_client_from_config(kubeconfig, context=None)
        self.core = client.CoreV1Api(self.client)
        self.custom = client.CustomObjectsApi(self.client)

    def nodes(self):
        """Returns the resource as the dynamic client discovers it."""
        return dynamic.DynamicClient(self.client).resources.get(api_version=self.api_version, kind="Node")

    def list(self, **options):
        """Lists with generated classes, or as custom objects without them."""
        if not self.ours:
            return self.core.list_node(**options)
        return self.custom.list_cluster_custom_object(GROUP, VERSION, "nodes", **options)

    def plain(self, found):
        """Returns the response as JSON."""
        return found if isinstance(found, dict) else self.client.sanitize_for_serialization(found)

    def table(self, **options):
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        return self.list(_headers=headers, _preload_content=False, **options)


def refusal(error):
    status = json.loads(error.body)
    return {"status": error.status, "reason": status.get("reason"), "message": status.get("message")}


def names(items):
    return [item["metadata"]["name"] for item in items]


def listed(target, writer):
    found = target.plain(target.list())
    return {"names": names(found["items"]),
            "kubelets": [item["status"]["nodeInfo"]["kubeletVersion"] for item in found["items"]]}


def selected(target, writer):
    return [names(target.plain(target.list(**options))["items"]) for options in (
        {"label_selector": "kubernetes.io/hostname in (node-2,node-5)"},
        {"field_selector": "spec.unschedulable=true"},
        {"field_selector": "metadata.name!=node-1", "label_selector": "kubernetes.io/hostname!=node-2"},
    )]


def paged(target, writer):
    pages, token = [], None
    while token != "":
        options = {"limit": 3} if token is None else {"limit": 3, "_continue": token}
        found = target.plain(target.list(**options))
        metadata = found["metadata"]
        pages.append([names(found["items"]), metadata.get("remainingItemCount")])
        token = metadata.get("continue") or ""
    return pages


def refused(target, writer):
    seen = []
    for options in ({"label_selector": "a=b=c"}, {"field_selector": "spec.podCIDR=x"}, {"_continue": "?", "limit": 1},
                    {"resource_version": "1", "resource_version_match": "Exact"}):
        try:
            seen.append(names(target.plain(target.list(**options))["items"]))
        except ApiException as error:
            seen.append(refusal(error))
    return seen


def watched(target, writer):
    """Starts a watch from a list, stops it, and resumes it after the last event."""
    seen = []

    def follow(version, until):
        stream = watch.Watch()
        for event in stream.stream(target.list, resource_version=version, field_selector=f"metadata.name={OWN}",
                                   timeout_seconds=10):
            metadata = target.plain(event["object"])["metadata"]
            told = (event["type"], metadata["name"], metadata["labels"].get("case"))
            # Skips writes of the control plane.
            if told not in seen:
                seen.append(told)
            if told == until:
                stream.stop()
                return metadata["resourceVersion"]

    version = target.plain(target.list())["metadata"]["resourceVersion"]
    writer.create_node({"metadata": {"name": OWN, "labels": {"case": "one"}}})
    version = follow(version, ("ADDED", OWN, "one"))
    writer.patch_node(OWN, {"metadata": {"labels": {"case": "two"}}})
    writer.delete_node(OWN)
    follow(version, ("DELETED", OWN, "two"))
    return seen


def watched_from_nowhere(target, writer):
    """Watches from an invalid resourceVersion, for which the client raises an exception."""
    try:
        for event in watch.Watch().stream(target.list, resource_version="x", timeout_seconds=1):
            return event["type"]
    except ApiException as error:
        return error.status
    return "end"


def dynamically(target, writer):
    nodes = target.nodes()
    found = nodes.get(label_selector="kubernetes.io/hostname")
    one = nodes.get(name="node-3").to_dict()
    one["metadata"].pop("managedFields", None)
    try:
        nodes.get(name="nobody")
    except dynamic.exceptions.NotFoundError as error:
        missing = json.loads(error.body)["message"]
    return {"kind": found.kind, "names": [item.metadata.name for item in found.items], "one": one, "missing": missing}


def dynamically_watched(target, writer):
    return [(event["type"], event["object"].kind, event["object"].metadata.name)
            for event in target.nodes().watch(field_selector="metadata.name=node-3", timeout=1)]


def table(target, writer):
    response = target.table(limit=3)
    found = json.loads(response.data)
    age = [column["name"] for column in found["columnDefinitions"]].index("Age")
    return {"status": response.status, "kind": found["kind"], "columns": found["columnDefinitions"],
            "cells": [row["cells"][:age] + row["cells"][age + 1:] for row in found["rows"]],
            "objects": [row["object"]["kind"] for row in found["rows"]]}


def over_a_web_socket(target, writer):
    """Returns the messages of a watch over a WebSocket, received with the package that the client uses for exec."""
    known = target.client.configuration
    headers = {}
    target.client.update_params_for_auth(headers, [], ["BearerToken"], None, None, None)
    connection = websocket.WebSocket(sslopt={
        "cert_reqs": ssl.CERT_REQUIRED, "ca_certs": known.ssl_ca_cert,
        "certfile": known.cert_file, "keyfile": known.key_file})
    path = f"/apis/{GROUP}/{VERSION}/nodes" if target.ours else "/api/v1/nodes"
    connection.connect(
        f"{known.host.replace('http', 'ws', 1)}{path}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dnode-3",
        header=headers, subprotocols=["any"])
    seen = {"subprotocol": connection.getsubprotocol(), "messages": []}
    while True:
        opcode, payload = connection.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return {**seen, "closed": int.from_bytes(payload[:2], "big")}
        event = json.loads(payload)
        seen["messages"].append((opcode, event["type"], event["object"]["metadata"]["name"], payload[-2:].decode()))


def verbs(target, writer):
    return target.nodes().verbs


CASES = (listed, selected, paged, refused, watched, watched_from_nowhere, dynamically, dynamically_watched,
         over_a_web_socket, table, verbs)


def main(kubeconfig, gateway, direct):
    writer = client.CoreV1Api(config.new_client_from_config(kubeconfig))
    targets = (Target("core", kubeconfig, False), Target("gateway", gateway, False),
               Target("aggregated", kubeconfig, True), Target("direct", direct, True))
    for case in CASES:
        for target in targets:
            line = {"case": f"python/{case.__name__}", "target": target.name, "result": case(target, writer)}
            text = json.dumps(line, default=str)
            for ours, core in ((f"nodes.{GROUP}", "nodes"), (f"{GROUP}/{VERSION}", "v1")):
                text = text.replace(ours, core)
            print(text, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
