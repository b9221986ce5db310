#!/usr/bin/env python3
"""Makes the pages below web/ a table of C: each file packed with gzip, its type, and what its content is called.

usage: tools/embed.py ROOT OUT FILE ...

A page (NAME.html) is served under a path of its own, with no blank lines and no comments. Every other file is an asset
and served as /assets/HASH/ and its path below ROOT, where HASH stands for the content of all assets: so modules import
each other by plain relative paths, and what a browser has kept is never wrong. src="..." and href="..." of a page that
name an asset are given that path; modules that its scripts import are named to the browser at once, since it would
find them only one after another."""

import gzip
import hashlib
import os
import re
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
IMPORT = re.compile(r"""^(?:import|export)\b[^;"']*?["'](\.[^"']+)["']""", re.MULTILINE)
LINK = re.compile(r'(src|href)="([^":#]+)"')
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def imports(assets, path, seen):
    """The modules that one needs, itself first, into the list."""
    if path in seen:
        return
    if path not in assets:
        sys.exit("embed.py: {} is imported and is no asset: list it in web/meson.build".format(path))
    seen.append(path)
    for found in IMPORT.findall(assets[path].decode()):
        imports(assets, os.path.normpath(os.path.join(os.path.dirname(path), found)), seen)


def page(assets, folder, text):
    named, scripts = [], []

    def link(found):
        if found.group(2) not in assets:
            return found.group(0)
        if found.group(1) == "src" and found.group(2).endswith(".js"):
            named.append(found.group(2))
            imports(assets, found.group(2), scripts)
        return '{}="{}{}"'.format(found.group(1), folder, found.group(2))

    text = LINK.sub(link, COMMENT.sub("", text))
    text = "\n".join(line for line in text.splitlines() if line.strip())
    hints = "".join('<link rel="modulepreload" href="{}{}">\n'.format(folder, path) for path in scripts
                    if path not in named)
    return (text.replace("</head>", hints + "</head>") + "\n").encode()


def row(number, path, content, lasting):
    """A page's bytes, and its row in the table."""
    packed = gzip.compress(content, 9, mtime=0)
    lines = [", ".join(map(str, packed[i:i + 24])) for i in range(0, len(packed), 24)]
    data = "static const unsigned char packed{}[] = {{\n    {},\n}};\n".format(number, ",\n    ".join(lines))
    kind = TYPES[os.path.splitext(path)[1] or ".html"]
    tag = hashlib.sha256(content).hexdigest()[:20]
    return data, '    {{"{}", "{}", "W/\\"{}\\"", packed{}, sizeof(packed{}), {}, {}}},\n'.format(
        path, kind, tag, number, number, len(content), "true" if lasting else "false")


def main():
    root, out, *files = sys.argv[1:]
    assets, pages = {}, {}
    for path in sorted(files):
        name = os.path.relpath(path, root).replace(os.sep, "/")
        with open(path, "rb") as f:
            (pages if name.endswith(".html") else assets)[name] = f.read()
    total = hashlib.sha256()
    for name, content in assets.items():
        total.update(b"%s %d\n" % (name.encode(), len(content)))
        total.update(content)
    folder = "assets/{}/".format(total.hexdigest()[:16])
    rows = [("/" if name == "chat.html" else "/" + name[:-5], page(assets, folder, content.decode()), False)
            for name, content in pages.items()]
    rows += [("/" + folder + name, content, True) for name, content in assets.items()]
    made = [row(number, *each) for number, each in enumerate(rows)]
    with open(out, "w", encoding="utf-8") as f:
        f.write('#include "server/routes/web.h"\n\n' + "\n".join(data for data, _ in made))
        f.write("\nconst mt_web_file mt_web_files[] = {\n" + "".join(line for _, line in made) + "};\n")
        f.write("const size_t mt_web_count = {};\n".format(len(made)))


main()
