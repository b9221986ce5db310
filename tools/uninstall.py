#!/usr/bin/env python3
"""Removes what `make install` has brought, and folders of our own that are empty then. Nothing that somebody has put
beside it is touched, nor the user, its folders and /etc/motet.conf.

usage: tools/uninstall.py BUILD [DESTDIR]"""

import contextlib
import json
import os
import subprocess
import sys

build, target = sys.argv[1], "".join(sys.argv[2:])
said = subprocess.run(["meson", "introspect", build, "--installed"], check=True, stdout=subprocess.PIPE).stdout
count = kept = 0
for place in json.loads(said).values():
    path = os.path.abspath(target) + place if target else place
    try:
        os.remove(path)
        count += 1
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # it is not ours to remove, or somebody has put a folder there
        print("\"{}\" stays: {}".format(path, error.strerror), file=sys.stderr)
        kept += 1
    if os.path.basename(os.path.dirname(path)) == "motet":
        with contextlib.suppress(OSError):  # there is something else in it
            os.rmdir(os.path.dirname(path))
print("{} files removed".format(count))
sys.exit(kept > 0)
