#!/usr/bin/env python3
"""Makes a server fail in every place where it can: while it starts, while it works, once and at random. Checks that who
is concerned is told in the API's words, that all others get to the last bit what they get alone and cold, that the
server goes on and keeps nothing; and that a server that cannot start says why.

usage: tests/faults/run.py --motet PROGRAM [--report FILE] [--sites N] [--starts N] [--rounds N] [--seed N] [--only TEXT]
                           [--part K/N | --parts N --keep FOLDER]

PROGRAM is motet_faulty, of tests/faults/inject.c. N sites and starts are drawn from all that there are; without, all are
tried, or those of which the name has TEXT in it, or every N-th from the K-th on. With --parts, all N parts one after
another; what came of each is kept in FOLDER, and a part that was tried with this PROGRAM is not tried again, so that a
run that was ended goes on where it was."""

import argparse
import collections
import http.client
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types

import control
import workload
import served

WITNESSES = ["text", "stream", "vectors"]
CHANCE = [k for k in control.KINDS if k != "hang"]
BAD = ("wrong", "unclear", "late")


class Run:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.program = control.Program(arguments.motet)
        self.control = control.Control(self.program, os.path.join(folder, "control"))
        self.dice = random.Random(arguments.seed)
        self.server = self.wanted = self.fds = None
        self.round = 0
        self.told = []      # (phase, site, what became of it)
        self.defects = []   # (phase, site, why)
        self.restarts = 0

    # ---- the server ----

    def options(self, name):
        at = os.path.join(self.folder, name)
        return ["--cache-dir", at, "--cache-disk", "64M", "--store", at + ".store", "--memory", "400M", "--precision",
                "fast", "--slow-step", "0.5s"]

    def start(self):
        self.control.set(mode=control.WATCH)
        self.server = served.Server(self.arguments.motet, workload.MODELS, *self.options("cache"),
                                    # one heap: others would have addresses left where starve() leaves none
                                    env=dict(self.control.env(), MALLOC_ARENA_MAX="1"))

    def stop(self):
        if self.server:
            self.server.stop(seconds=30)
        self.server = None

    def again(self):
        self.stop()
        self.restarts += 1
        self.start()
        self.settle()

    def settle(self):
        """One round in which nothing fails; what is open after it is what may be open."""
        self.ask(None)
        workload.unload(self.server)
        self.server.wait_idle()
        before = None
        while before != self.open_files():  # a model is closed by a thread of its own
            before = self.open_files()
            time.sleep(0.1)
        self.fds = before

    def open_files(self):
        """Without what comes and goes by itself: connections, files of the cache."""
        links = []
        for fd in os.listdir("/proc/{}/fd".format(self.server.process.pid)):
            try:
                links.append(os.readlink("/proc/{}/fd/{}".format(self.server.process.pid, fd)))
            except OSError:
                pass
        return sorted(re.sub(r"\d+", "", at) for at in links if self.folder not in at and "socket:" not in at)

    def alive(self):
        return self.server.process.poll() is None

    def ask(self, names):
        """A round with some of the requests, or all: [Outcome]"""
        self.round += 1
        return workload.run(self.server, self.round, self.wanted, names=names)

    # ---- what may be ----

    def learn(self):
        """Answers alone and cold, and which sites each kind of request passes."""
        with served.Server(self.arguments.motet, workload.MODELS, "--memory", "400M", "--precision", "fast") as cold:
            found = workload.run(cold, 0, None, together=False)
        assert all(o.kind == "same" for o in found), [(o.name, o.told) for o in found if o.kind != "same"]
        self.wanted = {o.name: o.told for o in found}
        self.start()
        owners = collections.defaultdict(list)
        passes = collections.Counter()
        for name in list(self.wanted) * (2 if self.arguments.sites is None else 1):
            self.control.clear()
            outcomes = self.ask([name])
            assert outcomes[0].kind == "same", (name, outcomes[0].told)
            workload.unload(self.server)
            self.server.wait_idle()
            for key, count in self.control.sites().items():
                passes[key] = max(passes[key], count)
                if name not in owners[key]:
                    owners[key].append(name)
        self.control.clear()
        self.settle()
        for key, count in self.control.sites().items():
            passes[key] = max(passes[key], count)
        return owners, passes

    def look_after(self, phase, site):
        """Whatever has failed, the server answers as ever afterwards, and has nothing of it."""
        self.control.rest()
        try:
            self.look_closer(phase, site)
        except (OSError, http.client.HTTPException, AssertionError) as why:
            time.sleep(0.2)
            self.bad(phase, site, "{}; status {}\n{}".format(why, self.server.process.poll(),
                                                             "\n".join(self.server.log[-12:])))
            self.again()

    def look_closer(self, phase, site):
        workload.unload(self.server)
        self.server.wait_idle()
        served.eventually(lambda: not self.ask(["text"])[0].told[0:4] == "503 ", 30)  # it may be opening a device anew
        for outcome in self.ask(["text", "picture", "vectors"] if self.round % 4 == 0 else ["text"]):
            if outcome.kind != "same":
                self.bad(phase, site, "afterwards {}: {} {}".format(outcome.name, outcome.kind, outcome.told))
        workload.unload(self.server)
        metrics = {}

        def at_rest():
            metrics.update(self.server.metrics())
            return metrics["motet_requests_bytes"] == 0 and metrics["motet_media_waiting_bytes"] == 0 and \
                self.open_files() == self.fds
        if not served.eventually(at_rest, 10):
            left = collections.Counter(self.open_files())
            left.subtract(self.fds)
            self.bad(phase, site, "left over: {} bytes of requests, {} of pictures, files {}".format(
                metrics["motet_requests_bytes"], metrics["motet_media_waiting_bytes"],
                {name: n for name, n in left.items() if n}))
            self.again()
        elif metrics["motet_disk_failed"]:
            self.again()  # as it should be: what comes next is to have a disk

    def bad(self, phase, site, why):
        self.defects.append((phase, site, why))
        print("DEFECT {} {}: {}".format(phase, site, why), flush=True)

    # ---- sites ----

    def fail_one(self, key, nth, owners):
        site, kind = self.program.name([key])[key], control.KINDS[(key >> 56) - 1]
        names = [self.dice.choice(owners[key])] + WITNESSES if owners.get(key) else None
        self.control.fail(key, nth)
        for attempt in range(4):  # some are passed in other company only, or with a cold cache, or when a model is opened
            if attempt == 3:
                workload.unload(self.server, "box")
            outcomes = self.ask(names if attempt < 2 else None)
            if self.control.get("fired") or any(o.kind not in ("same", "error") for o in outcomes):
                break
        fired = self.control.rest()
        kinds = collections.Counter(o.kind for o in outcomes)
        for o in outcomes:
            if o.kind in BAD or (o.kind == "dropped" and kind != "socket" and self.alive()):
                self.bad("site", site, "{}: {} {}".format(o.name, o.kind, o.told))
        touched = kinds["error"] + kinds["dropped"]
        loading = sum("cannot be loaded" in str(o.told) for o in outcomes if o.kind == "error")  # who waits for a model
        if touched - max(loading - 1, 0) > 1 and kind != "device":
            self.bad("site", site, "{} requests were ended: {}".format(touched, [
                (o.name, o.told) for o in outcomes if o.kind in ("error", "dropped")]))
        said = next((o.told for o in outcomes if o.kind == "error"), "")
        self.told.append(("pass {}".format(nth), site, "not passed" if not fired else "{} ended{}".format(
            touched, ": " + said if said else "") if touched else "no request ended"))
        self.look_after("site", site)

    def fail_sites(self, owners, passes):
        keys = [k for k in sorted(passes) if (k >> 56) - 1 != control.KINDS.index("hang")]
        names = self.program.name(keys)
        keys = [k for k in keys if (self.arguments.only or "") in names[k]]
        keys.sort(key=lambda k: (names[k], k))
        keys = keys[self.arguments.part[0]::self.arguments.part[1]]
        if self.arguments.sites is not None:
            keys = draw(self.dice, keys, self.arguments.sites)
        for number, key in enumerate(keys):
            for nth in sorted({1, max(1, passes[key] // 2)}) if self.arguments.sites is None else [1]:
                self.fail_one(key, nth, owners)
            if number % 50 == 49:
                print("{} of {} sites, {} defects".format(number + 1, len(keys), len(self.defects)), flush=True)
        return len(keys)

    # ---- chance ----

    def fail_at_random(self):
        ended = fired = 0
        for number in range(self.arguments.rounds):
            self.control.random(self.arguments.seed * 1000 + number, 0.0005 * (1 + number % 4), CHANCE)
            outcomes = self.ask(None)
            fired += self.control.rest()
            for o in outcomes:
                if o.kind in BAD:
                    self.bad("random", "round {}".format(number), "{}: {} {}".format(o.name, o.kind, o.told))
            ended += sum(o.kind in ("error", "dropped") for o in outcomes)
            self.look_after("random", "round {} of seed {}".format(number, self.arguments.seed))
        return fired, ended

    # ---- a step that does not come back ----

    def hang(self):
        """It is named in the log while it goes on, with whom it computes for; the server answers all else meanwhile, and
        the answer is the same when the step is over."""
        seen = len(self.server.log)
        self.control.set(hang=10**9)
        self.control.fail_any(["hang"], 1)
        outcomes = []
        asking = threading.Thread(target=lambda: outcomes.extend(self.ask(["text"])))
        asking.start()

        def named():
            return [line for line in self.server.log[seen:] if "engine.slow_step" in line and "goes on" in line]
        told = served.eventually(named, 60)
        who = re.findall(r"chatcmpl-\w+", told[0]) if told else []
        self.server.process.send_signal(signal.SIGQUIT)
        state = served.eventually(lambda: [line for line in self.server.log[seen:] if line.startswith("{")], 60)
        self.control.set(hang=0)
        asking.join()
        self.control.rest()
        if len(who) != 1:
            self.bad("hang", "a step", "the log says {}".format(told))
        elif not state or '"id": "{}", "choice"'.format(who[0]) not in json.dumps(json.loads(state[0])):
            self.bad("hang", "a step", "SIGQUIT says {}".format(state))
        if outcomes[0].kind != "same":
            self.bad("hang", "a step", "{} {}".format(outcomes[0].kind, outcomes[0].told))
        self.told.append(("hang", "hang src/engine/step.c choose", told[0] if told else "nothing is said"))

    # ---- a system that has no memory left ----

    def starve(self):
        """No fault of ours: the kernel gives the process hardly any addresses more. Large requests get an error, and
        when there is memory again all is as before."""
        pid = self.server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        said = []
        for megabytes, spare in ((1, 0), (2, 0), (3, 0), (3, 8), (12, 0), (24, 0)):
            if megabytes > 3 and "503" in said:  # what it has free already may be more than the smaller ones need
                break
            resource.prlimit(pid, resource.RLIMIT_AS, (self.server.memory("VmSize") + (spare << 20), before[1]))
            text = "a fox " * (megabytes * 2**20 // 6)
            bodies = [("/v1/completions", {"model": "box", "prompt": text, "max_tokens": 1}),
                      ("/v1/chat/completions", workload.chat([workload.OTHER, {"type": "text", "text": text}]))]
            for path, body in bodies:
                outcome = workload.ask_one(self.server, "text", path, body, None)
                said.append(outcome.told[:3] if outcome.kind == "error" else outcome.kind)
                if outcome.kind != "error":
                    self.bad("starved", "{} MB".format(megabytes), "{} {}".format(outcome.kind, outcome.told))
            resource.prlimit(pid, resource.RLIMIT_AS, before)
        refused = self.server.metrics()["motet_memory_refused_total"]
        if refused == 0 or "503" not in said:
            self.bad("starved", "RLIMIT_AS", "memory was refused {} times, and requests ended with {}".format(refused, said))
        self.told.append(("starved", "RLIMIT_AS of the process, requests of 1 to 24 MB", " ".join(said)))
        self.look_after("starved", "RLIMIT_AS")

    # ---- starts ----

    def start_once(self, at):
        """The status of a server that answers once, and ends; all lines that it wrote; and what it answered."""
        command = [self.arguments.motet, "serve", workload.MODELS[0], "--embedding-model", workload.MODELS[1], "--port",
                   "0", "--threads", "2", *self.options("other")]
        said, port, asked, answers = [], 0, [], []
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                   errors="replace", env=dict(os.environ, **at.env()))
        late = threading.Timer(60, process.kill)
        late.start()
        for line in process.stderr:
            said.append(line.rstrip())
            found = served.LISTENING.search(line)
            port = int(found.group(2)) if found else port
            if "model.ready" in line:
                asking = threading.Thread(target=lambda: answers.append(self.ask_and_end(process, port)))
                asking.start()
                asked.append(asking)
        for asking in asked:
            asking.join()
        status = process.wait()
        late.cancel()
        return status, said, answers[0] if answers else None

    def ask_and_end(self, process, port):
        """An Outcome; when it is there the server is told to end."""
        server = types.SimpleNamespace(port=port or listens_at(process.pid))
        name, path, body = workload.asks(0)[0]
        outcome, tries = None, 0
        while process.poll() is None and (not outcome or outcome.kind == "error") and tries < 100:  # one may be hit by it
            outcome = workload.ask_one(server, name, path, body, self.wanted)
            tries += 1
            time.sleep(0.05 if outcome.kind == "error" else 0)
        if outcome and outcome.kind == "dropped":  # it ends by itself
            served.eventually(lambda: process.poll() is not None, 20)
        if process.poll() is None:
            process.terminate()
        return outcome

    def fail_start(self, key, nth):
        site = self.program.name([key])[key]
        at = control.Control(self.program, os.path.join(self.folder, "starting"))
        at.fail(key, nth)
        status, said, outcome = self.start_once(at)
        sentences = [line for line in said if line.startswith("motet: ")]
        fired = at.get("fired")
        if status < 0 or (status != 0 and not sentences):
            self.bad("start", site, "pass {}: status {}, and said {}".format(nth, status, said[-8:]))
        elif status == 0 and outcome.kind != "same":
            self.bad("start", site, "pass {}: {} {}".format(nth, outcome.kind, outcome.told))
        self.told.append(("start {}".format(nth), site, "not passed" if not fired else "it started" if status == 0 else
                          "status {}: {}".format(status, sentences[-1] if sentences else "")))

    def fail_starts(self):
        at = control.Control(self.program, os.path.join(self.folder, "starting"))
        status, said, outcome = self.start_once(at)
        assert status == 0 and outcome.kind == "same", said
        passes = at.sites()
        names = self.program.name(list(passes))
        tries = [(key, nth) for key in sorted(passes, key=lambda k: names[k]) for nth in deep(key, passes[key])
                 if (self.arguments.only or "") in names[key]]
        tries = tries[self.arguments.part[0]::self.arguments.part[1]]
        if self.arguments.starts is not None:
            kept = set(draw(self.dice, sorted({key for key, _ in tries}), self.arguments.starts))
            tries = [(key, nth) for key, nth in tries if key in kept and nth == 1]
        for key, nth in tries:
            self.fail_start(key, nth)
        return len({key for key, _ in tries})

    def run(self):
        owners, passes = self.learn()
        self.hang()
        self.starve()
        begin = self.server.memory()
        sites = self.fail_sites(owners, passes)
        fired, ended = self.fail_at_random()
        grown = self.server.memory() - begin
        self.stop()
        starts = self.fail_starts()
        return {"sites": sites, "starts": starts, "fired": fired, "ended": ended, "restarts": self.restarts,
                "grown": grown / 2**20, "told": self.told, "defects": self.defects}


def tell(found, report):
    """What came of one part or several, in a line, and with a line for each site in a file. Whether all was well."""
    total = {name: sum(each[name] for each in found) for name in ("sites", "starts", "fired", "ended", "restarts")}
    told, defects = ([tuple(one) for each in found for one in each[name]] for name in ("told", "defects"))
    summary = ("{sites} sites while it works, {starts} while it starts, {fired} faults at random that ended {ended} requests; "
               "{restarts} restarts, {grown:+.1f} MB; {defects} defects").format(
                   grown=max(each["grown"] for each in found), defects=len(defects), **total)
    if report:
        with open(report, "w", encoding="utf-8") as f:
            f.write(summary + "\n\n")
            for phase, site, what in sorted(set(told), key=lambda t: (t[0][:5] == "start", t[1], t[0])):
                f.write("{:8} {}\n         {}\n".format(phase, site, what))
            f.write("".join("\nDEFECT {} {}: {}\n".format(*d) for d in defects))
    print(summary)
    return not defects


def run_part(arguments):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(arguments, folder)
        try:
            return run.run()
        finally:
            run.stop()


def run_parts(arguments):
    """Each part, unless it is known what comes of it."""
    found = []
    os.makedirs(arguments.keep, exist_ok=True)
    for k in range(arguments.parts):
        path = os.path.join(arguments.keep, "{}-of-{}.json".format(k + 1, arguments.parts))
        if not (os.path.exists(path) and os.path.getmtime(path) > os.path.getmtime(arguments.motet)):
            arguments.part, arguments.seed = [k, arguments.parts], k + 1
            result = run_part(arguments)
            with open(path + ".new", "w", encoding="utf-8") as f:
                json.dump(result, f)
            os.replace(path + ".new", path)
        with open(path, encoding="utf-8") as f:
            found.append(json.load(f))
        print("part {} of {}: {} defects".format(k + 1, arguments.parts, len(found[-1]["defects"])), flush=True)
    return found


def listens_at(pid):
    """The port of a process whose line that names it could not be written."""
    own = set()
    for fd in os.listdir("/proc/{}/fd".format(pid)):
        try:
            own.update(re.findall(r"socket:\[(\d+)\]", os.readlink("/proc/{}/fd/{}".format(pid, fd))))
        except OSError:
            pass
    with open("/proc/{}/net/tcp".format(pid), encoding="utf-8") as f:
        rows = [line.split() for line in f]
    return next((int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in own), 0)


def deep(key, passes):
    """Which passes of a site fail while a server starts: of files each, since each is another one."""
    if kind_of(key) in ("hang", "nan"):
        return []
    if kind_of(key) in ("open", "read", "map", "thread"):
        return range(1, min(passes, 16) + 1)
    return [1]


def kind_of(key):
    return control.KINDS[(key >> 56) - 1]


def draw(dice, keys, count):
    """So many of them, of each kind about as many."""
    by_kind = collections.defaultdict(list)
    for key in keys:
        by_kind[kind_of(key)].append(key)
    for some in by_kind.values():
        dice.shuffle(some)
    drawn = []
    while len(drawn) < min(count, len(keys)):
        for some in by_kind.values():
            if some and len(drawn) < count:
                drawn.append(some.pop())
    return drawn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--report")
    parser.add_argument("--only")
    parser.add_argument("--part", type=lambda text: [int(n) for n in text.split("/")], default=[0, 1])
    parser.add_argument("--parts", type=int)
    parser.add_argument("--keep")
    parser.add_argument("--sites", type=int)
    parser.add_argument("--starts", type=int)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    begin = time.time()
    ok = tell(run_parts(arguments) if arguments.parts else [run_part(arguments)], arguments.report)
    print("{:.0f} s".format(time.time() - begin))
    print("faults: {} passed, {} failed, 0 skipped".format(ok + 0, 1 - ok))
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
