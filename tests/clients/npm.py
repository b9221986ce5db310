"""Packages of npm at fixed versions, in a folder of their own."""

import json
import os
import subprocess


def installed(folder, packages):
    """Whether each is there. A version is that of the package itself, or "npm:PACKAGE@VERSION" of another under its name."""
    for name, version in packages.items():
        version = version.rsplit("@", 1)[-1]
        try:
            with open(os.path.join(folder, "node_modules", name, "package.json"), encoding="utf-8") as f:
                if json.load(f)["version"] != version:
                    return False
        except OSError:
            return False
    return True


def install(folder, packages):
    """Whether npm could fetch them. Their scripts are not run. What a package wants beside it is in the list itself, and
    one version of that has to do for all: earlier versions of clients know older ones only, and do not use them here."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
        json.dump({"private": True, "dependencies": packages}, f)
    done = subprocess.run(["npm", "install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund",
                           "--prefix", folder], stdout=subprocess.DEVNULL, check=False)
    return done.returncode == 0
