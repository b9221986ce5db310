"""Root file systems of Debian, made by debootstrap, in which the tests of what is shipped run commands."""

import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
MIRROR = "http://deb.debian.org/debian"
# Runs a command in a root file system, with processes and mounts of its own that end with it.
ENTER = r"""
set -e
root=$1 user=$2 cache=$3
shift 3
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" 2>/dev/null || true
[ -z "$cache" ] || { mkdir -p "$root/ccache"; mount --bind "$cache" "$root/ccache"; }
exec chroot --userspec="$user" "$root" "$@"
"""


class Missing(Exception):
    """The machine lacks what a stage needs."""


class Failed(Exception):
    """A command has failed; str() has the end of what it wrote."""


def need(*programs):
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Missing("there is no {}".format(program))


def need_root():
    if os.geteuid() != 0:
        raise Missing("root is needed for chroots")


def base(folder, suite):
    """The folder of a Debian with nothing in it, which is made once and copied."""
    path = os.path.join(folder, "base-" + suite)
    if not os.path.exists(path):
        need_root()
        need("debootstrap")
        making = path + ".part"
        shutil.rmtree(making, ignore_errors=True)
        with open(os.path.join(folder, "debootstrap-{}.log".format(suite)), "w", encoding="utf-8") as log:
            if subprocess.call(["debootstrap", "--variant=minbase", suite, making, MIRROR], stdout=log, stderr=log):
                raise Missing("debootstrap cannot make a Debian \"{}\": see {}".format(suite, log.name))
        os.rename(making, path)
    return path


class Root:
    """A fresh Debian. Use as a context manager, which removes it. cache: a folder for ccache, or None. Without a suite it is
    an empty folder, or what stands at path, which is left as it is."""

    def __init__(self, folder, suite, name, cache=None, path=None):
        self.path, self.name, self.keep = path or os.path.join(folder, name), name, path is not None
        self.log_path, self.cache = os.path.join(folder, name + ".log"), cache
        need_root()
        if suite is None:
            if path is None:
                shutil.rmtree(self.path, ignore_errors=True)
                os.makedirs(self.path)
            return
        found = base(folder, suite)
        shutil.rmtree(self.path, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", found, self.path], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(os.path.join("/etc", name), os.path.join(self.path, "etc", name))
        open(self.log_path, "w", encoding="utf-8").close()
        with open(os.path.join(self.path, "etc/dpkg/dpkg.cfg.d/quick"), "w", encoding="utf-8") as f:
            f.write("force-unsafe-io\n")  # nothing here has to outlive a loss of power
        with open(os.path.join(self.path, "etc/apt/sources.list"), "a", encoding="utf-8") as f:  # updates that everybody has
            f.write("deb {0} {1}-updates main\ndeb {0}-security {1}-security main\n".format(MIRROR, suite))

    def run(self, script, user="root", cwd="/", env=None, check=True, timeout=7200):
        """What a shell script writes; it must end with 0, or with check=False (status, what it wrote)."""
        done = subprocess.run(self.shell(script, user, cwd, env), text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              check=False, stdin=subprocess.DEVNULL)
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write("$ {}\n{}".format(script, done.stdout))
        if check and done.returncode != 0:
            raise Failed("{} ended with {}:\n{}".format(script, done.returncode, done.stdout[-3000:]))
        return done.stdout if check else (done.returncode, done.stdout)

    def shell(self, script, user="root", cwd="/", env=None):
        """The command line of a shell that runs a script as somebody who has logged in."""
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home(user),
                     "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", **(env or {})}
        if self.cache:
            variables.update(CCACHE_DIR="/ccache", CCACHE_NOHASHDIR="1", CCACHE_UMASK="000")
        return self.command(["sh", "-ec", "cd \"$0\"; " + script, cwd], user, variables)

    def command(self, words, user="root", variables=None):
        """The command line that runs these words in the root file system."""
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", self.path,
                self.ids(user), self.cache or "", "/usr/bin/env", "-i",
                *("{}={}".format(*pair) for pair in (variables or {}).items()), *words]

    def users(self):
        with open(os.path.join(self.path, "etc/passwd"), encoding="utf-8") as f:
            return {line.split(":")[0]: line.rstrip().split(":") for line in f}

    def ids(self, user):
        """User and group as numbers, of a name or of what is that already."""
        if re.fullmatch("[0-9]+:[0-9]+", user):
            return user
        return "{}:{}".format(*self.users()[user][2:4])

    def home(self, user):
        return self.users()[user][5]

    def install(self, *packages):
        self.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends " + " ".join(packages))

    def put_sources(self, place, owner="root"):
        """The tree as somebody has it who has downloaded it: what git knows, and no .git."""
        target = self.path + place
        os.makedirs(target)
        files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TREE,
                               check=True, stdout=subprocess.PIPE).stdout
        there = b"\0".join(f for f in files.split(b"\0") if f and os.path.lexists(os.path.join(os.fsencode(TREE), f)))
        packed = subprocess.run(["tar", "-cf", "-", "--null", "-T", "-"], cwd=TREE, input=there, check=True,
                                stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-xf", "-", "-C", target, "--no-same-owner"], input=packed, check=True)
        version = subprocess.run([os.path.join(TREE, "tools/version.sh")], cwd=TREE, check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        with open(os.path.join(target, ".tarball-version"), "w", encoding="utf-8") as f:
            f.write(version)
        if owner != "root":
            subprocess.run(["chown", "-R", self.ids(owner), target], check=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if not self.keep and kind is None:
            subprocess.run(["rm", "-rf", "--one-file-system", self.path], check=True)
