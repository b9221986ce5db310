#!/usr/bin/env python3
"""The manifests of deploy/kubernetes: their fields are those of the API, what they name of each other is there, and the
container's command is run, probed and ended as they say, beside a stream that goes on. Needs PyYAML.

usage: tests/e2e/test_kubernetes.py --motet PROGRAM [NAME ...]"""

import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # noqa: E402 pylint: disable=wrong-import-position

FOLDER = os.path.join(HERE, "..", "..", "deploy", "kubernetes")
THREADS_END = 3  # seconds that threads have once --drain-seconds are over
SUITE = served.Suite("kubernetes")
test = SUITE.test


# ---- the API's fields, as far as manifests may use them; "!" marks those that must be there

class Or:
    """Exactly one of several fields must be there."""

    def __init__(self, *names):
        self.names = names


NAMES = {str: str}
META = {"name!": str, "namespace": str, "labels": NAMES, "annotations": NAMES}
PORT = (int, str)
EXEC = {"command!": [str]}
HANDLER = {"httpGet": {"path": str, "port!": PORT, "host": str, "scheme": ("HTTP", "HTTPS"),
                       "httpHeaders": [{"name!": str, "value!": str}]},
           "exec": EXEC, "tcpSocket": {"port!": PORT, "host": str}, "sleep": {"seconds!": int}}
PROBE = {**HANDLER, "grpc": {"port!": int, "service": str}, "initialDelaySeconds": int, "timeoutSeconds": int,
         "periodSeconds": int, "successThreshold": int, "failureThreshold": int, "terminationGracePeriodSeconds": int,
         Or("httpGet", "exec", "tcpSocket", "grpc"): None}
PROBE.pop("sleep")
HOOK = {**HANDLER, Or("httpGet", "exec", "tcpSocket", "sleep"): None}
AMOUNTS = {str: (str, int)}
CONTAINER = {
    "name!": str, "image!": str, "imagePullPolicy": ("Always", "IfNotPresent", "Never"), "command": [str], "args": [str],
    "workingDir": str,
    "env": [{"name!": str, "value": str, "valueFrom": {
        "fieldRef": {"fieldPath!": str, "apiVersion": str}, "secretKeyRef": {"name!": str, "key!": str, "optional": bool},
        "configMapKeyRef": {"name!": str, "key!": str, "optional": bool}}}],
    "ports": [{"name": str, "containerPort!": int, "protocol": ("TCP", "UDP", "SCTP"), "hostPort": int}],
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "lifecycle": {"preStop": HOOK, "postStart": HOOK}, "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    "volumeMounts": [{"name!": str, "mountPath!": str, "readOnly": bool, "subPath": str}],
    "securityContext": {"runAsUser": int, "runAsGroup": int, "runAsNonRoot": bool, "readOnlyRootFilesystem": bool,
                        "allowPrivilegeEscalation": bool, "capabilities": {"add": [str], "drop": [str]}}}
POD = {"containers!": [CONTAINER], "initContainers": [CONTAINER], "terminationGracePeriodSeconds": int,
       "serviceAccountName": str, "nodeSelector": NAMES, "runtimeClassName": str,
       "volumes": [{"name!": str, "persistentVolumeClaim": {"claimName!": str, "readOnly": bool},
                    "configMap": {"name!": str}, "secret": {"secretName!": str},
                    "emptyDir": {"medium": str, "sizeLimit": str}}]}
RULE = {"apiGroups!": [str], "resources!": [str], "verbs!": [str], "resourceNames": [str]}
REFERENCE = {"group": str, "kind": str, "name!": str, "namespace": str, "port": int, "weight": int}
MATCH = {"path": {"type": ("Exact", "PathPrefix", "RegularExpression"), "value": str}, "method": str}
KINDS = {
    ("apps/v1", "Deployment"): {"spec!": {
        "replicas": int, "selector!": {"matchLabels!": NAMES}, "template!": {"metadata!": {"labels!": NAMES}, "spec!": POD},
        "strategy": {"type": ("Recreate", "RollingUpdate"), "rollingUpdate": {"maxSurge": PORT, "maxUnavailable": PORT}},
        "minReadySeconds": int, "progressDeadlineSeconds": int}},
    ("v1", "Service"): {"spec!": {
        "selector": NAMES, "type": ("ClusterIP", "NodePort", "LoadBalancer"), "clusterIP": str,
        "ports!": [{"name": str, "port!": int, "targetPort": PORT, "protocol": ("TCP", "UDP", "SCTP"), "appProtocol": str}]}},
    ("v1", "ConfigMap"): {"data": NAMES},
    ("v1", "ServiceAccount"): {},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules!": [RULE]},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {
        "subjects": [{"kind!": str, "name!": str, "namespace": str}],
        "roleRef!": {"apiGroup!": str, "kind!": str, "name!": str}},
    ("inference.networking.k8s.io/v1", "InferencePool"): {"spec!": {
        "selector!": {"matchLabels!": NAMES}, "targetPorts!": [{"number!": int}],
        "endpointPickerRef!": {"group": str, "kind": str, "name!": str, "port": {"number!": int},
                               "failureMode": ("FailOpen", "FailClose")}}},
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): {"spec!": {
        "parentRefs": [REFERENCE], "hostnames": [str],
        "rules": [{"matches": [MATCH], "backendRefs": [REFERENCE], "timeouts": {"request": str, "backendRequest": str}}]}},
}


def hold(value, schema, where):
    """Asserts that a value is what the schema says."""
    if isinstance(schema, list):
        assert isinstance(value, list) and value, "{}: a list is wanted".format(where)
        for i, each in enumerate(value):
            hold(each, schema[0], "{}[{}]".format(where, i))
    elif isinstance(schema, dict) and str in schema:
        assert isinstance(value, dict), "{}: an object is wanted".format(where)
        for key, each in value.items():
            hold(key, str, where)
            hold(each, schema[str], where + "." + key)
    elif isinstance(schema, dict):
        assert isinstance(value, dict), "{}: an object is wanted".format(where)
        known = {name.rstrip("!"): each for name, each in schema.items() if isinstance(name, str)}
        for key, each in value.items():
            assert key in known, "{}: the API has no field {}".format(where, key)
            hold(each, known[key], where + "." + key)
        for name in schema:
            if isinstance(name, Or):
                assert sum(each in value for each in name.names) == 1, "{}: one of {}".format(where, name.names)
            elif name.endswith("!"):
                assert name[:-1] in value, "{}: {} must be there".format(where, name[:-1])
    elif isinstance(schema, tuple) and isinstance(schema[0], str):
        assert value in schema, "{}: one of {}".format(where, schema)
    else:
        plain = isinstance(value, schema) and (not isinstance(value, bool) or schema is bool)
        assert plain, "{}: {!r} is of another type".format(where, value)


def manifests():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise served.Skip("there is no PyYAML") from None
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        with open(path, encoding="utf-8") as f:
            for each in yaml.safe_load_all(f):
                yield os.path.basename(path), each


def kind(wanted, name):
    found = [m for _, m in manifests() if m["kind"] == wanted and m["metadata"]["name"] == name]
    assert len(found) == 1, (wanted, name, len(found))
    return found[0]


def pods():
    """(labels, spec) of each deployment."""
    return [(m["spec"]["template"]["metadata"]["labels"], m["spec"]["template"]["spec"])
            for _, m in manifests() if m["kind"] == "Deployment"]


def ports_of(pod):
    return {key: p["containerPort"] for c in pod["containers"] for p in c.get("ports", [])
            for key in (p.get("name"), p["containerPort"])}


@test
def every_field_is_one_of_the_api():
    for path, each in manifests():
        what = (each["apiVersion"], each["kind"])
        assert what in KINDS, (path, what)
        hold(each, {"apiVersion!": str, "kind!": str, "metadata!": META, **KINDS[what]}, "{} {}".format(path, what[1]))


@test
def wrong_fields_are_noticed():
    hold({"exec": {"command": ["a"]}}, HOOK, "hook")
    for wrong, schema in (({"exec": {"command": "a"}}, HOOK), ({"exec": {"commands": ["a"]}}, HOOK), ({}, HOOK),
                          ({"name": "a"}, CONTAINER), ({"periodSeconds": "2", "exec": EXEC}, PROBE),
                          ({"name": 1}, META), ({"periodSeconds": True}, PROBE)):
        try:
            hold(wrong, schema, "here")
        except AssertionError:
            continue
        raise AssertionError("nobody noticed {}".format(wrong))


@test
def what_is_named_is_there():
    for _, m in manifests():
        spec = m.get("spec", {})
        if m["kind"] == "Deployment":
            labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
            assert spec["selector"]["matchLabels"].items() <= labels.items(), m["metadata"]
            volumes = {v["name"] for v in pod.get("volumes", [])}
            for volume in pod.get("volumes", []):
                if "configMap" in volume:
                    kind("ConfigMap", volume["configMap"]["name"])
            if "serviceAccountName" in pod:
                kind("ServiceAccount", pod["serviceAccountName"])
            for c in pod["containers"]:
                assert {v["name"] for v in c.get("volumeMounts", [])} <= volumes
                env = {e["name"] for e in c.get("env", [])}
                assert set(re.findall(r"\$\((\w+)\)", " ".join(c.get("args", [])))) <= env
                for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                    for probe in c.get(name, {}).values():
                        assert not isinstance(probe, dict) or probe["port"] in ports_of(pod), (name, probe)
        if m["kind"] in ("Service", "InferencePool"):
            chosen = spec["selector"].get("matchLabels", spec["selector"])
            found = [pod for labels, pod in pods() if chosen.items() <= labels.items()]
            assert len(found) == 1, m["metadata"]
            for port in spec.get("ports", []) + spec.get("targetPorts", []):
                assert port.get("targetPort", port.get("number")) in ports_of(found[0]), port
        if m["kind"] == "InferencePool":
            picker = spec["endpointPickerRef"]
            assert picker["port"]["number"] in [p["port"] for p in kind("Service", picker["name"])["spec"]["ports"]]
        if m["kind"] == "HTTPRoute":
            for rule in spec["rules"]:
                for backend in rule["backendRefs"]:
                    kind(backend["kind"], backend["name"])
        if m["kind"] == "RoleBinding":
            kind("Role", m["roleRef"]["name"])
            for subject in m["subjects"]:
                kind(subject["kind"], subject["name"])


# ---- the container's command


class Pod(served.Server):
    """What the kubelet would start, with ports of this machine and the test's model."""

    def __init__(self, pod):
        container = pod["containers"][0]
        values = {"status.podIP": "127.0.0.1", "metadata.namespace": "default"}
        env = {e["name"]: values[e["valueFrom"]["fieldRef"]["fieldPath"]] for e in container["env"]}
        arguments = [re.sub(r"\$\((\w+)\)", lambda found: env[found.group(1)], each) for each in container["args"]]
        ports = {"port": 0}  # motet's own name for any
        arguments = [re.sub(r"(tcp://\*:)\d+", lambda found: found.group(1) + str(served.free_port()), each)
                     for each in arguments if each.partition("=")[0] not in ("--port", "--memory")]
        assert arguments[0] == "serve" and arguments[1].startswith("/models/"), arguments
        assert ports_of(pod)["http"] == 8000 and "--port=8000" in container["args"], ports
        super().__init__(SUITE.program, SUITE.folder, *arguments[2:], env=env)
        self.container, self.pod = container, pod

    def probe(self, name):
        """Asks as the kubelet does, which calls pods by their address."""
        wanted = self.container[name]["httpGet"]
        return self.request("GET", wanted["path"], headers={"host": "10.1.2.3:8000", "user-agent": "kube-probe/1.31",
                                                            "connection": "close"}).status


def replica():
    labels = kind("InferencePool", "motet")["spec"]["selector"]["matchLabels"]
    return next(pod for found, pod in pods() if labels.items() <= found.items())


def option(pod, name):
    return next(a.partition("=")[2] for a in pod["containers"][0]["args"] if a.startswith(name + "="))


@test
def the_command_serves_whom_the_manifests_send():
    pod = replica()
    hosts = kind("HTTPRoute", "motet")["spec"]["hostnames"] + ["motet:8000", "motet.default", "motet.default.svc:8000",
                                                               "motet.default.svc.cluster.local:8000", "10.1.2.3:8000"]
    with Pod(pod) as server:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert server.probe(name) == 200, name
        model = option(pod, "--served-name")
        for host in hosts:
            got = server.post("/v1/chat/completions", {"model": model, "max_tokens": 1,
                                                       "messages": [{"role": "user", "content": "hi"}]}, {"host": host})
            assert got.status == 200, (host, got.body)
            got = server.post("/v1/chat/completions/render", {"model": model, "messages": [
                {"role": "user", "content": "hi"}]}, {"host": host})  # what the router asks
            assert got.status == 200 and got.json()["token_ids"], (host, got.body)
        assert server.request("GET", "/metrics", headers={"host": "10.1.2.3:8000"}).status == 200
        assert server.post("/v1/completions", {"prompt": "a"}, {"host": "evil.example"}).status == 403


@test
def the_user_is_not_root():
    """The kubelet refuses a container with runAsNonRoot whose image names its user by anything else than a number."""
    assert replica()["containers"][0]["securityContext"]["runAsNonRoot"] is True
    with open(os.path.join(FOLDER, "..", "..", "Dockerfile"), encoding="utf-8") as f:
        user = re.findall(r"^USER (.*)$", f.read(), re.MULTILINE)[-1]
    assert re.fullmatch("[1-9][0-9]*:[1-9][0-9]*", user), user


@test
def the_memory_fits_the_limit():
    pod = replica()
    limit = pod["containers"][0]["resources"]["limits"]["memory"]
    told = option(pod, "--memory")
    assert limit.endswith("Gi") and told.endswith("G") and int(limit[:-2]) * 0.9 >= int(told[:-1]), (limit, told)


@test
def the_command_ends_as_the_manifests_say():
    pod = replica()
    container = pod["containers"][0]
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    drain, listen = int(option(pod, "--drain-seconds")), int(option(pod, "--drain-listen-seconds"))
    assert command[0] == "sleep" and command[1].isdigit(), command
    assert int(command[1]) + drain + THREADS_END < pod["terminationGracePeriodSeconds"]
    ready = container["readinessProbe"]
    assert listen >= 2 * ready["periodSeconds"] * ready["failureThreshold"], "nobody notices so fast"
    long = {"prompt": "a", "max_tokens": 1500, "n": 8, "stream": True, "ignore_eos": True, "logprobs": 5}
    with Pod(pod) as server:
        with served.send(server, "/v1/completions", long) as stream:
            assert stream.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"  # and is not read until the end
            subprocess.run([command[0], "0"], check=True)  # what it calls is there; meanwhile it serves as ever
            assert server.probe("readinessProbe") == 200
            server.process.send_signal(signal.SIGTERM)
            assert served.eventually(lambda: server.probe("readinessProbe") == 503)
            assert server.probe("livenessProbe") == 200
            got = server.post("/v1/completions", {"prompt": "a"})
            assert got.status == 503 and "retry-after" in got.headers, got.body
            assert server.process.poll() is None
            rest = b""
            while piece := stream.recv(1 << 16):
                rest += piece
        assert json.loads(rest[rest.rindex(b'data: {"id"'):].split(b"\n")[0][6:]) and rest.rstrip().endswith(b"0"), rest[-300:]
        assert b"data: [DONE]" in rest[-100:], rest[-300:]
        assert server.process.wait(served.PATIENCE) == 0


SUITE.main()
