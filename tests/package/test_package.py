#!/usr/bin/env python3
"""What is installed beside the program, looked at by the programs that will read it, where they are there.

usage: tests/package/test_package.py --motet PROGRAM [NAME ...]"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # noqa: E402 pylint: disable=wrong-import-position

SUITE = served.Suite("package")
test = SUITE.test


def said(*command, text=None, status=0):
    """What a command writes; it must end with this status."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=served.PATIENCE, check=False)
    assert done.returncode == status, "{}: {}{}".format(command, done.stdout, done.stderr)
    return done.stdout + done.stderr


def form(name):
    return said(SUITE.program, "help", "--as", name)


def need(program):
    if not shutil.which(program):
        raise served.Skip("{} is not installed".format(program))


@functools.lru_cache(maxsize=None)
def options_of(command):
    return set(re.findall(r"^  --([a-z-]+)", said(SUITE.program, command, "--help"), re.MULTILINE))


@functools.lru_cache(maxsize=None)
def command_names():
    return re.findall(r"^  ([a-z]+) ", said(SUITE.program, "--help"), re.MULTILINE)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


# ---- man pages


@test
def man_pages_have_every_option_and_no_warning():
    pages = {"man": form("man"), "man-conf": form("man-conf")}
    if shutil.which("groff"):
        for name, page in pages.items():
            assert said("groff", "-man", "-ww", "-z", "-Tutf8", text=page) == "", name
    if shutil.which("mandoc"):
        for name, page in pages.items():
            complaints = [line for line in subprocess.run(
                ["mandoc", "-Tlint", "-Wwarning"], input=page, capture_output=True, text=True, check=False
            ).stdout.splitlines() if "missing date" not in line]  # there is none without git
            assert not complaints, (name, complaints)
    plain = pages["man"].replace("\\-", "-")
    for command in command_names():
        assert "\\fBmotet {}\\fR".format(command) in pages["man"], command
        for option in options_of(command):
            assert "\\fB--{}\\fR".format(option) in plain, (command, option)
    conf = pages["man-conf"].replace("\\-", "-")
    for option in options_of("serve") - {"help", "config", "check"}:
        assert "\\fB{}\\fR = ".format(option) in conf, option


# ---- completions


def complete(folder, *words):
    """What bash would offer for the last of these words."""
    script = os.path.join(folder, "motet.bash")
    if not os.path.exists(script):
        with open(script, "w", encoding="utf-8") as f:
            f.write(form("bash"))
    line = 'source "$1"; shift; COMP_WORDS=(motet "$@"); COMP_CWORD=$#; _motet; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-u", "-c", line, "bash", script, *words], cwd=folder, capture_output=True,
                          text=True, timeout=served.PATIENCE, check=False,
                          env=dict(os.environ, PATH=folder + ":/usr/bin:/bin"))
    assert done.returncode == 0 and not done.stderr, done.stderr
    return set(filter(None, done.stdout.split("\n")))


@test
def bash_completes_commands_options_and_values():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "models"))
        open(os.path.join(folder, "motet.keys"), "w", encoding="utf-8").close()
        assert set(command_names()) <= complete(folder, "")
        assert complete(folder, "ser") == {"serve"}
        assert complete(folder, "serve", "--prec") == {"--precision"}
        assert complete(folder, "serve", "--precision", "") == {"fast", "reference"}
        assert complete(folder, "serve", "--precision", "=", "re") == {"reference"}
        assert complete(folder, "serve", "--precision", "=") == {"fast", "reference"}
        assert complete(folder, "serve", "m") == {"models"}
        fake = os.path.join(folder, "motet")
        with open(fake, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho NAME SIZE; echo mine/one 3; echo other/two 4\n")
        os.chmod(fake, 0o755)
        assert complete(folder, "serve", "m") == {"models", "mine/one"}
        os.remove(fake)
        assert complete(folder, "serve", "--keys", "motet.k") == {"motet.keys"}
        assert complete(folder, "serve", "--media-root", "") == {"models"}
        assert complete(folder, "serve", "--port", "") == set()
        assert complete(folder, "help", "ru") == {"run"}
        for command in command_names():
            assert complete(folder, command, "--") == {"--" + name for name in options_of(command)}, command


@test
def zsh_reads_its_completions():
    need("zsh")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "_motet")
        with open(path, "w", encoding="utf-8") as f:
            f.write(form("zsh"))
        assert said("zsh", "-f", "-n", path) == ""
        assert said("zsh", "-f", "-c", "fpath=({} $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[motet]"
                    .format(folder)) == "_motet\n"


@test
def fish_reads_its_completions():
    need("fish")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "motet.fish")
        with open(path, "w", encoding="utf-8") as f:
            f.write(form("fish"))
        said("fish", "--no-execute", path)

        def offered(line):
            text = said("env", "HOME=" + folder, "fish", "-c", "source {}; complete -C '{}'".format(path, line))
            return [row.split("\t")[0] for row in text.splitlines()]
        assert offered("motet serve --precision ") == ["fast", "reference"]
        assert "serve" in offered("motet s")
        assert "--port" in offered("motet serve --po") and "--port" not in offered("motet run --po")


@test
def every_shell_has_every_option():
    zsh, fish = form("zsh"), form("fish")
    for command in command_names():
        of_zsh = re.search(r"^    {}\)$(.*?)^        ;;$".format(command), zsh, re.MULTILINE | re.DOTALL).group(1)
        assert {"--" + name for name in options_of(command)} == set(re.findall(r"'\*?(--[a-z-]+)=?\[", of_zsh)), command
        of_fish = re.findall(r"__fish_motet_is {}' -l ([a-z-]+) ".format(command), fish)
        assert options_of(command) == set(of_fish), command


# ---- the service, the package


@test
def systemd_takes_the_unit():
    need("systemd-analyze")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "motet.service")
        with open(path, "w", encoding="utf-8") as f:
            f.write(read("contrib", "systemd", "motet.service").replace("@bindir@/motet", SUITE.program))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True,
                              timeout=served.PATIENCE, check=False)
        # a machine without systemd as its first process has other complaints, which do not name the unit
        assert "motet.service" not in done.stdout + done.stderr, done.stderr
        if "--offline" in said("systemd-analyze", "--help"):
            score = said("systemd-analyze", "security", "--offline=true", "--no-pager", path).splitlines()[-1]
            worst = float(re.search(r"motet\.service: ([0-9.]+)", score).group(1))
            assert worst <= 1.4, score  # what docs/operations.md says


@test
def an_installation_has_its_files():
    need("meson")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["meson", "install", "-C", os.path.dirname(SUITE.program), "--no-rebuild", "--quiet"],
                              env=dict(os.environ, DESTDIR=folder), capture_output=True, text=True,
                              timeout=served.PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found = {os.path.basename(name) for _, _, names in os.walk(folder) for name in names}
        assert found == {"motet", "motet.1", "motet.conf.5", "motet.conf.example", "_motet", "motet.fish",
                         "motet.service", "motet.conf"}, found
        user, folders = (os.path.join(folder, found[1:]) for found in sorted(installed(folder, "motet.conf")))
        unit = os.path.join(folder, installed(folder, "motet.service")[0][1:])
        with open(unit, encoding="utf-8") as f:
            wanted = re.search(r"^User=(\w+)$", f.read(), re.MULTILINE).group(1)
        for path, tool in ((user, "systemd-sysusers"), (folders, "systemd-tmpfiles")):
            with open(path, encoding="utf-8") as f:
                assert wanted in f.read(), path
        need("systemd-sysusers")
        assert wanted in said("systemd-sysusers", "--dry-run", user)


def installed(folder, name):
    """Paths below a folder that have a name, as from the root."""
    return [os.path.join(top, name)[len(folder):] for top, _, names in os.walk(folder) if name in names]


@test
def uninstall_takes_away_what_install_brings_and_nothing_else():
    need("meson")
    build = os.path.dirname(SUITE.program)
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.join(top, "with a space")
        os.mkdir(folder)
        env = dict(os.environ, DESTDIR=folder)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], env=env, check=True)
        bash = installed(folder, "motet.fish")[0]
        other = os.path.join(folder, os.path.dirname(bash)[1:], "other.fish")
        open(other, "w", encoding="utf-8").close()
        said(sys.executable, os.path.join(ROOT, "tools", "uninstall.py"), build, folder)
        left = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        assert left == [other], left
        assert not [at for at, _, _ in os.walk(folder) if os.path.basename(at) == "motet"]


@test
def uninstall_says_what_it_cannot_take_away():
    need("meson")
    build = os.path.dirname(SUITE.program)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"],
                       env=dict(os.environ, DESTDIR=folder), check=True)
        program = folder + installed(folder, "motet")[0]
        os.remove(program)
        os.mkdir(program)
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "uninstall.py"), build, folder],
                              capture_output=True, text=True, timeout=served.PATIENCE, check=False)
        assert done.returncode == 1 and '"{}" stays: '.format(program) in done.stderr, done
        assert os.listdir(program) == [] and not [name for _, _, names in os.walk(folder) for name in names], done


@test
def install_needs_no_tools_that_macos_lacks():
    """Relative paths, and those with a space: made absolute by the shell alone."""
    with tempfile.TemporaryDirectory() as top:
        folder = os.path.realpath(top)
        for name, script in (("meson", 'echo "meson $* DESTDIR=${DESTDIR-}"'), ("ninja", ":"), ("realpath", "exit 1")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n{}\n".format(script))
            os.chmod(os.path.join(folder, name), 0o755)
        for prefix, target in (("/usr", "a b"), ("my own", "/x y"), ("/a b", "")):
            done = subprocess.run([os.path.join(ROOT, "tools", "install.sh"), "build", prefix, target], cwd=folder,
                                  env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]), capture_output=True,
                                  text=True, timeout=served.PATIENCE, check=False)
            assert done.returncode == 0, done
            assert "-Dprefix={} ".format(os.path.join(folder, prefix)) in done.stdout, done
            assert done.stdout.endswith(" DESTDIR={}\n".format(target and os.path.join(folder, target))), done


@test
def make_serves_models_whose_path_has_a_space_and_several():
    with tempfile.TemporaryDirectory() as top:
        build = os.path.join(top, "a build")
        os.mkdir(build)
        program = os.path.join(build, "motet")
        with open(program, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nfor each; do echo "[$each]"; done\n')
        os.chmod(program, 0o755)
        model = os.path.join(top, "a model")
        os.mkdir(model)
        serve = os.path.join(ROOT, "tools", "serve.sh")
        assert said(serve, build, model, "--port", "1") == "[serve]\n[{}]\n[--port]\n[1]\n".format(model)
        assert said(serve, build, "org/one two") == "[serve]\n[org/one]\n[two]\n"
        assert said("make", "-s", "-n", "-C", ROOT, "serve", "BUILD=b", "MODEL=it's a model", "SERVE=--port 1").splitlines(
        )[-1].endswith("""tools/serve.sh 'b' 'it'\\''s a model' --port 1""")


@test
def the_package_needs_what_the_build_needs():
    wanted = {line.split()[1] for line in read("tools", "packages").splitlines() if line.startswith("build ")}
    control = read("debian", "control")
    named = set(re.findall(r"^ ([a-z0-9.+-]+)(?: \(.*\))?,$", control.split("\n\n")[0], re.MULTILINE))
    only_here = {"debhelper-compat", "dh-sequence-installsysusers"}
    only_there = {"gcc", "libc6-dev", "libcmocka-dev", "curl", "poppler-utils"}
    assert named - only_here == wanted - only_there, named ^ wanted
    version = re.search(r"^  version: '([^']+)'", read("meson.build"), re.MULTILINE).group(1)
    assert read("debian", "changelog").startswith("motet ({}) ".format(version))
    assert said(SUITE.program, "--version").startswith("motet {} ".format(version))


@test
def the_version_names_its_source():
    text = said(SUITE.program, "--version")
    for line in (r"commit: (unknown|[0-9a-f]{7,}\+? \d{4}-\d\d-\d\d)", r"compiler: .*\d+\.\d+", r"devices: .*cpu",
                 r"processor: \S+ with \S+"):
        assert re.search("^{}".format(line), text, re.MULTILINE), (line, text)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "tools"))
        script = shutil.copy(os.path.join(ROOT, "tools", "version.sh"), os.path.join(folder, "tools"))
        assert said(script) == "unknown\n"
        with open(os.path.join(folder, ".tarball-version"), "w", encoding="utf-8") as f:
            f.write("1234567 2026-01-02\n")
        assert said(script) == "1234567 2026-01-02\n"


@test
def alerts_are_about_metrics_that_exist():
    rules = read("contrib", "prometheus", "motet.rules.yml")
    if shutil.which("promtool"):
        said("promtool", "check", "rules", os.path.join(ROOT, "contrib", "prometheus", "motet.rules.yml"))
    there = ""
    for more in ((), ("--model", "other=" + SUITE.folder)):  # one model, and several
        with SUITE.start("--api-key", "key", *more) as server:
            server.post("/v1/completions", {"prompt": [1], "max_tokens": 1}, {"x-api-key": "key"})  # which loads one
            there += server.request("GET", "/metrics", headers={"x-api-key": "key"}).body.decode()
    for page in (rules, read("docs", "operations.md")):
        for name in set(re.findall(r"(?:vllm:|motet_)[a-z_]+", page)):
            if not name.startswith("motet_0"):
                assert re.search(r"^{}[{{ ]|^# TYPE {} ".format(name, re.sub("_bucket$", "", name)), there,
                                 re.MULTILINE), name


SUITE.main()
