#!/usr/bin/env python3
"""Holds the manifests of deploy/kubernetes to the resource definitions of others, which are not part of this project: what
they require is there, what they do not know is not, and values are of their kinds. A Go file with the types of the
router's configuration is read for the names of their fields. Needs PyYAML and jsonschema.

usage: tools/manifests.py DEFINITION.yaml ... [TYPES.go]"""

import glob
import os
import re
import sys

import jsonschema
import yaml

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "deploy", "kubernetes")


def strict(schema):
    """The schema, where what is not named is wrong."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    made = {k: strict(v) for k, v in schema.items()}
    if "properties" in made and isinstance(made["properties"], dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", not made["properties"])
    return made


def definitions(paths):
    """{(group/version, kind): schema}"""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for each in yaml.safe_load_all(f):
                spec = each["spec"]
                for version in spec["versions"]:
                    schema = strict(version["schema"]["openAPIV3Schema"])
                    schema["properties"]["metadata"] = {"type": "object"}
                    found[spec["group"] + "/" + version["name"], spec["names"]["kind"]] = schema
    return found


def fields(path):
    """{struct: names of its fields}"""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    structs = re.findall(r"type (\w+) struct \{(.*?)\n\}", text, re.S)
    return {name: set(re.findall(r'json:"(\w+)', body)) for name, body in structs}


def check_router(config, types):
    def known(value, struct):
        assert set(value) <= types[struct] | {"apiVersion", "kind"}, (struct, value)
    known(config, "EndpointPickerConfig")
    for plugin in config["plugins"]:
        known(plugin, "PluginSpec")
    names = {p.get("name", p["type"]) for p in config["plugins"]}
    for profile in config["schedulingProfiles"]:
        known(profile, "SchedulingProfile")
        for plugin in profile["plugins"]:
            known(plugin, "SchedulingPlugin")
            assert plugin["pluginRef"] in names, plugin
    for source in config["dataLayer"]["sources"]:
        known(source, "DataLayerSource")
        assert {source["pluginRef"], *(e["pluginRef"] for e in source["extractors"])} <= names


def main():
    known = definitions(p for p in sys.argv[1:] if not p.endswith(".go"))
    types = {k: v for p in sys.argv[1:] if p.endswith(".go") for k, v in fields(p).items()}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        with open(path, encoding="utf-8") as f:
            objects = list(yaml.safe_load_all(f))
        for each in objects:
            what, schema = (each["apiVersion"], each["kind"]), known.get((each["apiVersion"], each["kind"]))
            if schema:
                jsonschema.validate(each, schema)
            if each["kind"] == "ConfigMap" and types:
                check_router(yaml.safe_load(each["data"]["config.yaml"]), types)
            checked = schema or (each["kind"] == "ConfigMap" and types)
            print("{}: {} {}: {}".format(os.path.basename(path), *what, "ok" if checked else "no definition was given"))


if __name__ == "__main__":
    main()
