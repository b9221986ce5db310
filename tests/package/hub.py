#!/usr/bin/env python3
"""A hub with the model in the box, as motet/box; prints its address and runs until its standard input ends.

usage: tests/package/hub.py"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
import hub  # noqa: E402 pylint: disable=wrong-import-position

with hub.Hub() as server:
    server.add("motet/box", hub.files_of(os.path.join(HERE, "..", "..", "models", "box")))
    print(server.url, flush=True)
    sys.stdin.read()
