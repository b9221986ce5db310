#!/usr/bin/env python3
"""Runs real clients from npm against a server with a replay checkpoint: each completes a task with a call of a tool,
and what its second turn shares with its first must come from the cache.

usage: tests/clients/run.py --motet PROGRAM [--install] [NAME ...]

The packages are looked for in $MOTET_CLIENTS, else in ~/.cache/motet/clients; --install puts them there. Without node
or the packages the test is skipped with a sentence. Clients get an empty home, a proxy that is not there for everything
but this machine, and every switch that stops them from calling home."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import npm
import replay

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "api"))
import served  # pylint: disable=wrong-import-position

SKIP = 77
MACHINE = "linux-arm64" if os.uname().machine in ("aarch64", "arm64") else "linux-x64"
CLINE, COPILOT = "cli-" + MACHINE, "copilot-" + MACHINE  # folders of programs
PACKAGES = {"openai": "7.55.0", "@anthropic-ai/sdk": "1.9.0", "ai": "7.0.170", "@ai-sdk/openai-compatible": "3.0.90",
            "@langchain/openai": "1.5.8", "@langchain/core": "1.2.13", "@langchain/ollama": "1.3.0", "ollama": "0.6.4",
            "@openai/agents": "0.20.0", "zod": "4.6.7", "ws": "8.23.0",
            "opencode-ai": "1.18.18", "opencode-" + MACHINE: "1.18.18", "@openai/codex": "0.169.0",
            "@anthropic-ai/claude-code": "2.1.326", "@ai-sdk/anthropic": "4.0.101", "@mistralai/mistralai": "2.7.0",
            "@lmstudio/sdk": "1.5.0", "@google/genai": "3.1.0", "@google/gemini-cli": "0.61.0"}
# Earlier major versions that are still in use, each under its name with the number behind it.
EARLIER = {"ai": {"5": "5.0.277", "6": "6.0.318"}, "@ai-sdk/anthropic": {"5": "2.0.112", "6": "3.0.137"},
           "@ai-sdk/openai-compatible": {"5": "1.0.61", "6": "2.0.87"}, "openai": {"5": "5.23.2", "6": "6.30.1"},
           "@anthropic-ai/sdk": {"0": "0.137.0"}, "@google/genai": {"2": "2.32.0"}}
PACKAGES.update({"{}-{}".format(name, major): "npm:{}@{}".format(name, version)
                 for name, versions in EARLIER.items() for major, version in versions.items()})
# OpenRouter's, frameworks and agents.
PACKAGES.update({
    "@openrouter/sdk": "1.3.19", "@openrouter/ai-sdk-provider": "2.10.0", "@mastra/core": "0.24.9",
    "llamaindex": "0.12.1", "@llamaindex/openai": "0.4.22", "@llamaindex/workflow": "1.1.24",
    "@earendil-works/pi-coding-agent": "0.74.2", "@continuedev/cli": "1.5.47", "@qwen-code/qwen-code": "0.15.10",
    "@vibe-kit/grok-cli": "0.0.34", "cline": "3.0.65", "@cline/" + CLINE: "3.0.65",
    "@github/copilot": "1.0.102", "@github/" + COPILOT: "1.0.102", "@strands-agents/sdk": "1.19.0",
    "genkit": "1.42.0", "@genkit-ai/compat-oai": "1.42.0", "@inngest/agent-kit": "0.13.2", "inngest": "3.54.2",
    "@tanstack/ai": "0.58.0", "@tanstack/ai-openai": "0.23.1"})
NOTES = "replay:found The secret colour is blue."
ANSWER = "The notes say that the colour is blue."
SEEN = "The notes and the picture say that the colour is blue."
DONE = re.compile(r"request\.done (\S+) (\S+) prompt (\d+) cached (\d+)")


def scripts(work):
    """What the model says: to the libraries, and to each agent with the name of its tool. When it sees the notes, it
    says what stands in them."""
    path = os.path.join(work, "notes.txt")

    def task(tool, agent=None, **arguments):
        """agent: a name that no other has, where one before it has a tool of the same name."""
        call, agent = json.dumps({"name": tool, "arguments": arguments}), agent or tool
        return ["<think>\nI need to look ({}).\n</think>\n\nLet me look with {}.\n<tool_call>\n{}\n</tool_call>".format(
            agent, agent, call), "{} found nothing.".format(agent)]

    with open(os.path.join(HERE, "..", "api", "scripts.json"), encoding="utf-8") as f:
        common = json.load(f)
    claude = task("Read", file_path=path)
    claude[:0] = ["The picture first.\n<tool_call>\n" + json.dumps(
        {"name": "Read", "arguments": {"file_path": os.path.join(work, "picture.png")}}) + "\n</tool_call>"]
    return {"plain": common["plain"], "behind ~": common["behind ~"], "weather": common["weather"], "claude": claude,
            "pi": task("read", "pi", path=path), "continue_cli": task("Read", "continue", filepath=path),
            "cline": task("read_files", "cline", files=[{"path": path}]),
            "copilot": task("view", "copilot", path=path),
            "qwen": task("read_file", "qwen", file_path=path), "grok": task("view_file", path=path),
            "codex": task("exec_command", cmd="cat " + path), "opencode": task("read", filePath=path),
            "gemini": task("read_file", file_path=path),
            "found": [ANSWER], "found@picture": [SEEN],
            # of a call that a client insists on: no text stands before it, which the server would not let the model say
            "forced": [common["weather"][0].replace("Let me look.\n", "").replace("need", "am to tell"), "It will be fine."],
            "weather@picture": [common["weather"][0].replace("Let", "Now let"), "It will be sunny in your picture, too."]}


def environment(home, **more):
    nowhere = "http://127.0.0.1:9"
    return {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "TERM": "dumb",
            "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "ALL_PROXY": nowhere, "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost", "DO_NOT_TRACK": "1", **more}


class Clients:
    def __init__(self, packages, server, work):
        self.packages, self.server, self.work = packages, server, work
        self.url = "http://127.0.0.1:{}".format(server.port)
        self.picture = os.path.join(work, "picture.png")

    def run(self, command, home, **more):
        done = subprocess.run(command, cwd=self.work, env=environment(home, **more), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=300, check=False)
        assert done.returncode == 0, "ended with {}:\n{}".format(done.returncode, done.stdout[-3000:])
        return done.stdout

    @staticmethod
    def write(home, path, content):
        """Writes a config as JSON: its path."""
        path = os.path.join(home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(content, f)
        return path

    def bin(self, name):
        return os.path.join(self.packages, "node_modules", ".bin", name)

    def library(self, name, home):
        """name: of the script, with "-" and the major version of its packages behind it where that is an earlier one."""
        script, _, major = name.partition("-")
        self.run(["node", os.path.join(HERE, script + ".mjs"), self.packages, self.url, self.picture, major], home)

    def check_cache(self, before, dialect):
        """Of an agent's requests the two with the longest prompts are the turns of its task."""
        lines = [DONE.search(line) for line in self.server.log[before:]]
        turns = [(int(m.group(3)), int(m.group(4))) for m in lines if m and m.group(2) == dialect]
        assert len(turns) >= 2, "only {} requests".format(len(turns))
        (first, _), (second, cached) = sorted(turns)[-2:]
        assert cached >= 0.95 * first, "{} of {} shared tokens came from the cache: {}".format(cached, first, turns)
        return "{} tokens, then {} of them cached and {} new".format(first, cached, second - cached)

    def pi(self, home):
        model = {"id": "any", "name": "any", "input": ["text", "image"], "contextWindow": 131072, "maxTokens": 8192}
        self.write(home, ".pi/agent/models.json", {"providers": {"motet": {
            "baseUrl": self.url + "/v1", "api": "openai-completions", "apiKey": "none", "models": [model]}}})
        text = self.run([self.bin("pi"), "--provider", "motet", "--model", "any", "-p", "@" + self.picture,
                         "replay:pi What do my notes say?"], home, PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")
        assert SEEN in text, text[-3000:]
        return "chat"

    def continue_cli(self, home):
        """A config of Continue is YAML, of which JSON is a part."""
        config = self.write(home, ".continue/config.yaml", {"name": "motet", "version": "1.0.0", "schema": "v1", "models": [
            {"name": "any", "provider": "openai", "model": "any", "apiBase": self.url + "/v1", "apiKey": "none",
             "roles": ["chat"], "capabilities": ["tool_use"]}]})
        text = self.run([self.bin("cn"), "-p", "--config", config, "--auto",
                         "replay:continue_cli What do my notes say?"], home, CONTINUE_TELEMETRY_ENABLED="0")
        assert ANSWER in text, text[-3000:]
        return "chat"

    def cline(self, home):
        program = os.path.join(self.packages, "node_modules", "@cline", CLINE, "bin", "cline")
        self.run([program, "auth", "openai-compatible", "-k", "none", "-m", "any", "-b", self.url + "/v1"], home)
        text = self.run([program, "-P", "openai-compatible", "-m", "any", "replay:cline What do my notes say?"], home,
                        CLINE_TELEMETRY_DISABLED="1")
        assert ANSWER in text, text[-3000:]
        return "chat"

    def copilot(self, home):
        """By chat completions, then by responses on a WebSocket."""
        program = os.path.join(self.packages, "node_modules", "@github", COPILOT, "copilot")
        for more in ({}, {"COPILOT_PROVIDER_WIRE_API": "responses", "COPILOT_PROVIDER_TRANSPORT": "websockets"}):
            text = self.run([program, "--allow-all-tools", "--no-auto-update", "-p", "replay:copilot What do my notes say?"],
                            home, COPILOT_PROVIDER_BASE_URL=self.url + "/v1", COPILOT_PROVIDER_API_KEY="none",
                            COPILOT_MODEL="any", COPILOT_OFFLINE="true", **more)
            assert ANSWER in text, text[-3000:]
        return "chat"

    def qwen(self, home):
        """Qwen Code asks a proxy for addresses of this machine, too."""
        self.write(home, ".qwen/settings.json", {"telemetry": {"enabled": False},
                                                 "privacy": {"usageStatisticsEnabled": False},
                                                 "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}})
        text = self.run([self.bin("qwen"), "--auth-type", "openai", "-y", "-p", "replay:qwen What do my notes say?"], home,
                        OPENAI_API_KEY="none", OPENAI_BASE_URL=self.url + "/v1", OPENAI_MODEL="any", HTTP_PROXY="",
                        HTTPS_PROXY="", ALL_PROXY="")
        assert ANSWER in text, text[-3000:]
        return "chat"

    def grok(self, home):
        text = self.run([self.bin("grok"), "--model", "any", "-p", "replay:grok What do my notes say?"], home,
                        GROK_API_KEY="none", GROK_BASE_URL=self.url + "/v1")
        assert ANSWER in text, text[-3000:]
        return "chat"

    def claude(self, home):
        text = self.run([self.bin("claude"), "-p", "replay:claude What do my notes say?", "--model", "claude-any",
                         "--output-format", "json", "--allowedTools", "Read"], home, ANTHROPIC_BASE_URL=self.url,
                        ANTHROPIC_API_KEY="none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_TELEMETRY="1",
                        DISABLE_AUTOUPDATER="1", DISABLE_ERROR_REPORTING="1")
        assert SEEN in text, text[-3000:]
        return "messages"

    def codex(self, home):
        folder = os.path.join(home, ".codex")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as f:
            f.write('model = "gpt-any"\nmodel_provider = "motet"\ncheck_for_update_on_startup = false\n'
                    '[analytics]\nenabled = false\n[otel]\nexporter = "none"\n'
                    '[model_providers.motet]\nname = "motet"\nbase_url = "{}/v1"\n'
                    'wire_api = "responses"\n'.format(self.url))
        text = self.run([self.bin("codex"), "exec", "--skip-git-repo-check",
                         "--dangerously-bypass-approvals-and-sandbox", "--image", self.picture, "--",
                         "replay:codex What do my notes say?"], home)
        assert SEEN in text, text[-3000:]
        return "responses"

    def opencode(self, home):
        config = {"$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled",
                  "model": "motet/any", "small_model": "motet/any",
                  "provider": {"motet": {"npm": "@ai-sdk/openai-compatible", "name": "motet",
                                         "options": {"baseURL": self.url + "/v1"},
                                         "models": {"any": {"name": "any", "tool_call": True, "attachment": True,
                                                            "modalities": {"input": ["text", "image"],
                                                                           "output": ["text"]},
                                                            "limit": {"context": 131072, "output": 8192}}}}}}
        folder = os.path.join(home, ".config", "opencode")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "opencode.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        program = os.path.join(self.packages, "node_modules", "opencode-" + MACHINE, "bin", "opencode")
        text = self.run([program, "run", "replay:opencode What do my notes say?", "--file", self.picture], home,
                        OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1",
                        OPENCODE_DISABLE_LSP_DOWNLOAD="1", OPENCODE_DISABLE_DEFAULT_PLUGINS="1")
        assert SEEN in text, text[-3000:]
        return "chat"

    def gemini(self, home):
        """The base URL alone would choose a way to sign in that this version refuses without a terminal."""
        folder = os.path.join(home, ".gemini")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "settings.json"), "w", encoding="utf-8") as f:
            json.dump({"security": {"auth": {"selectedType": "gemini-api-key"}},
                       "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
                       "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}, f)
        text = self.run([self.bin("gemini"), "--skip-trust", "-m", "gemini-any", "-p",
                         "replay:gemini What do my notes say? @picture.png"], home, GEMINI_API_KEY="none",
                        GOOGLE_GEMINI_BASE_URL=self.url)
        assert SEEN in text, text[-3000:]
        return "gemini-stream"


LIBRARIES = ("openai", "openai-5", "openai-6", "anthropic", "anthropic-0", "ai", "ai-5", "ai-6", "mistral", "langchain",
             "agents", "ollama", "langchain_ollama", "continue", "lmstudio", "lmstudio_sdk", "genai", "genai-2", "files",
             "batches")
AGENTS = ("claude", "codex", "opencode", "gemini")

LIBRARIES += ("openrouter", "openrouter_ai", "mastra", "llamaindex", "strands", "genkit", "agentkit", "tanstack")
AGENTS += ("pi", "continue_cli", "qwen", "grok", "cline", "copilot")


def skip(sentence):
    print("clients skipped: " + sentence)
    sys.exit(SKIP)


def install(folder):
    if not npm.install(folder, PACKAGES):
        skip("npm cannot fetch the packages")
    # the one script that is run puts Claude Code's program in its place
    subprocess.run(["node", "install.cjs"], cwd=os.path.join(folder, "node_modules", "@anthropic-ai", "claude-code"),
                   stdout=subprocess.DEVNULL, check=True)


def run_one(clients, name, home):
    before = len(clients.server.log)
    if name in LIBRARIES:
        clients.library(name, home)
        return ""
    dialect = getattr(clients, name)(home)
    clients.server.wait_idle()
    return ": " + clients.check_cache(before, dialect)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    folder = os.environ.get("MOTET_CLIENTS") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "motet", "clients")
    if not shutil.which("node"):
        skip("there is no node; install it to test with real clients")
    if arguments.install and not npm.installed(folder, PACKAGES):
        install(folder)
    if not npm.installed(folder, PACKAGES):
        skip("the packages are not in {}; run make test-clients".format(folder))
    failed = passed = 0
    with tempfile.TemporaryDirectory() as made:
        work = os.path.join(made, "work")
        os.makedirs(work)
        with open(os.path.join(work, "notes.txt"), "w", encoding="utf-8") as f:
            f.write(NOTES + "\n")
        with open(os.path.join(work, "picture.png"), "wb") as f:
            f.write(replay.picture())
        model = replay.write(os.path.join(made, "replay"), scripts(work), sees=True)
        env = {"HF_HUB_CACHE": os.path.join(made, "hub")}  # where models that clients create are kept
        os.makedirs(env["HF_HUB_CACHE"])
        with served.Server(arguments.motet, model, "--any-model", "--allow-pull", "--files-dir", os.path.join(made, "files"),
                           env=env) as server:
            clients = Clients(folder, server, work)
            for name in arguments.names or LIBRARIES + AGENTS:
                home = os.path.join(made, "home-" + name)
                os.makedirs(home)
                try:
                    print("ok {}{}".format(name, run_one(clients, name, home)), flush=True)
                    passed += 1
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    print("FAILED {}: {}".format(name, error), flush=True)
                    failed += 1
    print("clients: {} passed, {} failed".format(passed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
