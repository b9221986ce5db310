#!/usr/bin/env python3
"""A server as a service: what it tells who started it, its config files, and whether it would start.

usage: tests/api/test_service.py --motet PROGRAM [NAME ...]"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import tempfile

import fixture
import served

SUITE = served.Suite("api_service")
test, start = SUITE.test, SUITE.start


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(served.PATIENCE)

    def wait(self, wanted):
        """All messages up to the first that has this line."""
        seen = []
        while not any(wanted in message.split("\n") for message in seen):
            seen.append(self.socket.recv(4096).decode())
        return seen


def check(*options, **variables):
    """(exit status, standard output, standard error) of motet serve --check."""
    done = subprocess.run([SUITE.program, "serve", SUITE.folder, "--check", *options], capture_output=True, text=True,
                          timeout=served.PATIENCE, check=False, env=dict(os.environ, **variables))
    return done.returncode, done.stdout, done.stderr


def check_folder(folder, *options):
    done = subprocess.run([SUITE.program, "serve", folder, "--check", "--port", "0", *options], capture_output=True, text=True,
                          timeout=served.PATIENCE, check=False)
    return done.returncode, done.stdout


@test
def what_cannot_start_is_not_well():
    """A check loads the model: a tokenizer or a template that is broken, tensors of other shapes, no place for the cache."""
    with tempfile.TemporaryDirectory() as top:
        folder = fixture.write(os.path.join(top, "model"))
        assert check_folder(folder)[0] == 0

        def broken(name, change):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(change(text))
            status, out = check_folder(folder)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            assert status == 1 and "FAILED  model and memory: " in out, (name, out)
        broken("tokenizer.json", lambda text: text[:len(text) // 2])
        broken("tokenizer.json", lambda text: "{}")
        broken("config.json", lambda text: re.sub(r'("intermediate_size": )(\d+)', r"\g<1>7\g<2>", text))
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write("{% if %}")
        status, out = check_folder(folder)
        assert status == 1 and "FAILED" in out, out
        os.remove(os.path.join(folder, "chat_template.jinja"))
        for place in ("/proc/nope", os.path.join(folder, "config.json")):
            status, out = check_folder(folder, "--cache-dir", place)
            assert status == 1 and 'FAILED  store and folders: "--cache-dir" cannot use' in out, out
        cache = os.path.join(top, "cache")
        for place in (cache, os.path.join(cache, "below", "it")):  # as a start makes them
            assert check_folder(folder, "--cache-dir", place)[0] == 0 and not os.path.exists(cache)
        status, out = check_folder(folder, "--cache-dir", cache + "/x" * 2500)
        assert status == 1 and '"--cache-dir" cannot use' in out, out
        status, out = check_folder(folder, "--web-connect", "https://tools.example/mcp")
        assert status == 1 and "FAILED  origins: --web-connect" in out, out


@test
def what_a_start_says_of_its_folders_and_addresses_a_check_says():
    """The same sentence, and nothing is changed; beside what is well, the check names what it did not look at."""
    with tempfile.TemporaryDirectory() as top, socket.socket() as taken:
        def file(name, text):
            path = os.path.join(top, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return path
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        newer, files, locked = (os.path.join(top, name) for name in ("newer.db", "files", "locked"))
        with contextlib.closing(sqlite3.connect(newer)) as other:
            other.execute("PRAGMA user_version = 99")
        os.mkdir(files)
        file("files/batches", "")
        os.mkdir(locked)
        keys, prompts = file("keys", "sk-1 name=a\nsk-2 name=b\n"), file("prompts", '{"prompt": "hi"}\n')
        os.chmod(keys, 0o600)
        lock = open(os.path.join(locked, "lock"), "w", encoding="utf-8")
        fcntl.flock(lock, fcntl.LOCK_EX)
        for options in (("--store", prompts), ("--store", newer), ("--files-dir", files), ("--files-dir", locked),
                        ("--kv-events-replay", "tcp://127.0.0.1:0"), ("--kv-events", "nonsense"),
                        ("--kv-events", "tcp://127.0.0.1:{}".format(taken.getsockname()[1])),
                        ("--warm-prompts", prompts, "--keys", keys)):
            before = sorted(os.walk(top))
            status, out, err = check("--port", "0", *options)
            failed = [line for line in out.splitlines() if line.startswith("FAILED")]
            assert status == 1 and len(failed) == 1 and err == "", (options, out, err)
            assert sorted(os.walk(top)) == before, options
            said = subprocess.run([SUITE.program, "serve", SUITE.folder, "--port", "0", "--log-level", "error", *options],
                                  capture_output=True, text=True, timeout=served.PATIENCE, check=False)
            start_says = said.stderr.removeprefix("motet: ").strip()
            assert said.returncode == 1, (options, said)
            if options[1] != files:  # a start tries to make the folder, a check a file in it
                assert failed[0].split(": ", 1)[1] == start_says, (options, failed, said)
        lock.close()
        status, out, err = check("--port", "0", "--store", os.path.join(top, "new.db"), "--files-dir", locked,
                                 "--cache-dir", os.path.join(top, "cache"), "--warm-prompts", prompts,
                                 "--cache-remote", "redis://127.0.0.1:1", "--kv-events", "tcp://127.0.0.1:*")
        rest = [line for line in out.splitlines() if line.startswith("-       not looked at: ")]
        assert status == 0 and len(rest) == 5, (out, err)


@test
def tensors_decide_and_not_what_a_config_says_of_them():
    """A checkpoint whose config.json tells of AWQ or GPTQ and whose tensors are plain: well, and it answers as without."""
    with tempfile.TemporaryDirectory() as top, start() as server:
        folder, ask = fixture.write(os.path.join(top, "model")), {"prompt": "a b c", "max_tokens": 8, "temperature": 0}
        plain = server.post("/v1/completions", ask).json()["choices"]
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        for method in "awq", "gptq":
            config["quantization_config"] = {"quant_method": method, "bits": 4, "group_size": 128}
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            assert check_folder(folder)[0] == 0
            other = served.Server(SUITE.program, folder)
            try:
                assert other.post("/v1/completions", ask).json()["choices"] == plain
            finally:
                other.stop(seconds=60)


@test
def a_service_manager_hears_of_beginning_life_and_end():
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(folder)
        # half a second is asked for, so an eighth is kept: three of them show that it goes on
        with start(env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "500000"}) as server:
            begun = manager.wait("READY=1")
            assert begun[0] == 'STATUS=loading "tiny"', begun
            assert 'STATUS=serving "tiny"' in begun[-1].split("\n"), begun
            assert "READY=1" not in "".join(begun[:-1])
            assert server.request("GET", "/ready").status == 200
            for _ in range(3):
                manager.wait("WATCHDOG=1")
            server.process.send_signal(signal.SIGTERM)
            assert "READY=1" not in "".join(manager.wait("STOPPING=1"))
            assert server.process.wait(served.PATIENCE) == 0


@test
def nobody_is_told_who_did_not_ask():
    with tempfile.TemporaryDirectory() as folder:
        manager = Manager(folder)
        with start(env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}) as server:
            manager.wait("READY=1")
            server.process.send_signal(signal.SIGTERM)
            assert "WATCHDOG=1" not in manager.wait("STOPPING=1")
            assert server.process.wait(served.PATIENCE) == 0


@test
def standard_files_that_are_closed_are_given_to_nothing_else():
    with tempfile.TemporaryDirectory() as folder:
        closed = os.path.join(folder, "closed")
        with open(closed, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nexec {} "$@" <&- >&-\n'.format(shlex.quote(SUITE.program)))
        os.chmod(closed, 0o700)
        server = served.Server(closed, SUITE.folder)
        try:
            names = [os.readlink("/proc/{}/fd/{}".format(server.process.pid, number)) for number in range(2)]
            assert names == ["/dev/null"] * 2, names
        finally:
            assert server.stop(seconds=60) == 0, "it does not end"
        said = subprocess.run([closed, "version"], capture_output=True, text=True, timeout=served.PATIENCE, check=False)
        assert (said.returncode, said.stderr) == (1, "motet: cannot write the output: Bad file descriptor\n"), said


@test
def what_is_asked_by_a_signal_does_not_end_a_server_that_begins():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "answers.db")
        with start("--store", path):
            pass
        def begins():
            """What it said, up to where it listens; asked while it waits for the store, a second at most."""
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                process = subprocess.Popen([SUITE.program, "serve", SUITE.folder, "--port", "0", "--store", path],
                                           stderr=subprocess.PIPE, text=True)
                files = "/proc/{}/fd".format(process.pid)
                served.eventually(lambda: path in [os.path.realpath(os.path.join(files, f)) for f in os.listdir(files)])
                process.send_signal(signal.SIGHUP)
                process.send_signal(signal.SIGQUIT)
                other.execute("COMMIT")
            with process:
                said = ""
                while "server.listening" not in said and (line := process.stderr.readline()):
                    said += line
                process.terminate()
            return said
        said = begins()
        if "database is locked" in said:  # the machine was too busy
            said = begins()
        assert "server.listening" in said, said


def descendants(pid):
    """A process and all below it."""
    found = [pid]
    with contextlib.suppress(OSError), open("/proc/{0}/task/{0}/children".format(pid), encoding="utf-8") as f:
        for child in f.read().split():
            found += descendants(int(child))
    return found


@test
def signals_that_mean_nothing_to_it_end_neither_a_server_nor_its_decoders():
    with start() as server:
        processes = descendants(server.process.pid)
        assert len(processes) >= 3, processes  # it decodes pictures in processes of their own
        for name in ("USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PIPE", "XFSZ", "PWR", "STKFLT", "RTMIN", "RTMAX"):
            for pid in processes:
                os.kill(pid, getattr(signal, "SIG" + name, signal.SIGUSR1))
        assert server.chat("hi", max_tokens=1).status == 200
        assert set(processes) <= set(descendants(server.process.pid))


@test
def a_server_gives_up_what_it_does_not_need():
    with tempfile.TemporaryDirectory() as mine, tempfile.TemporaryDirectory() as others:
        path, elsewhere = os.path.join(mine, "keys"), os.path.join(others, "keys")
        for name, key in (path, "sk-one"), (elsewhere, "sk-two"):
            with open(name, "w", encoding="utf-8") as f:
                f.write(key + " name=a\n")

        def reload_elsewhere(*options):
            """What comes of keys that are a link to a folder that nobody named: (metrics, log line)."""
            if os.path.lexists(path):
                os.remove(path)
            with open(path, "w", encoding="utf-8") as f:
                f.write("sk-one name=a\n")
            with start("--keys", path, *options, ready=False) as server:
                key = {"authorization": "Bearer sk-one"}
                assert served.eventually(lambda: server.request("GET", "/ready").status == 200)
                found = server.request("GET", "/metrics", headers=key).body.decode()
                with open("/proc/{}/status".format(server.process.pid), encoding="utf-8") as f:
                    status = f.read()
                os.remove(path)
                os.symlink(elsewhere, path)
                server.process.send_signal(signal.SIGHUP)
                return found, status, served.eventually(lambda: [l for l in server.log if "server.reload" in l])[0]
        found, status, line = reload_elsewhere("--sandbox", "off")
        assert "server.reloaded" in line and "NoNewPrivs:\t0" in status, (line, status)
        assert 'part="files"} 0' in found and 'part="programs"} 0' in found, found
        found, status, line = reload_elsewhere()
        if 'part="files"} 0' in found:
            raise served.Skip("no Landlock here")
        assert "the keys stay as they are" in line and line.endswith(
            "may not be read: check its permissions, or restart the server where its folder is a new one"), line
        assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status, status
        kept = 1 << 1 | 1 << 2 | 1 << 10  # files of others, and low ports
        assert not int(re.search(r"CapEff:\s+(\w+)", status).group(1), 16) & ~kept, status


@test
def a_config_file_is_read_and_the_command_line_wins():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "motet.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write("# ours\nserved-name = from-file\nalias = a\nalias = b\napi-key = secret\nthreads = 1\n")
        with start("--config", path, "--served-name", "from-line") as server:
            assert server.request("GET", "/v1/models").status == 401
            got = server.request("GET", "/v1/models", headers={"authorization": "Bearer secret"}).json()
            assert got["data"][0]["id"] == "from-line", got
        with open(path, "a", encoding="utf-8") as f:
            f.write("served_name = x\n")
        got = check("--config", path)
        assert got[0] == 2 and got[2] == ('motet: {}:7: "served_name" is not an option: did you mean "served-name"?\n'
                                          .format(path)), got


@test
def a_check_says_all_that_is_wrong_and_starts_nothing():
    status, out, err = check("--port", "0")
    assert status == 0 and "FAILED" not in out and err == "", (out, err)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        bad = os.path.join(folder, "bad.pem")
        with open(bad, "w", encoding="utf-8") as f:
            f.write("no certificate")
        store = os.path.join(folder, "store")
        status, out, err = check("--port", port, "--keys", os.path.join(folder, "none"), "--tls-cert", bad, "--tls-key",
                                 bad, "--media-root", bad, "--trusted-proxy", "x", "--tool-format", "x", "--store", store,
                                 "--memory", "1K")
        failed = [line for line in out.splitlines() if line.startswith("FAILED")]
        assert status == 1 and len(failed) == 7, (status, out, err)
        for part, why in (("model and memory", "raise it"), ("keys", "none"), ("certificate", "bad.pem"),
                          ("address", "in use"), ("proxies", '"x"'), ("store and folders", "bad.pem"),
                          ("formats", '"x"')):
            assert any(part in line and why in line for line in failed), (part, out)
        assert not os.path.exists(store)
        # one that is right: a store that is to be made, a file that names it
        path = os.path.join(folder, "motet.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write("store = {}\nport = 0\n".format(store))
        status, out, err = check("--config", path)
        assert status == 0 and "ok      {}\n".format(path) in out, (out, err)
        assert not os.path.exists(store)
        assert check("--store", os.path.join(folder, "no", "store"), "--port", "0")[0] == 1


SUITE.main()
