#!/usr/bin/env python3
"""motet run: one question, by a person at a terminal and by a script."""
import base64
import json
import os
import signal
import subprocess
import tempfile

import helpers
from helpers import fake

TESTS = []
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle")
SHAPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "shapes.png")


def test(function):
    TESTS.append(function)
    return function


def run(motet, *arguments, **settings):
    return helpers.run(motet, "run", *arguments, **settings)


@test
def a_message_goes_through_the_template_and_is_answered(motet, tiny):
    code, out, err = run(motet, tiny, "hello", "--max-tokens", "4", "--default-temperature", "0")
    assert code == 0 and out.endswith("\n") and len(out) > 1, (code, out, err)
    assert err == "motet: cut off: the answer has as many tokens as it may\n", err
    assert run(motet, tiny, "-", "--max-tokens", "4", "--default-temperature", "0", text=b"hello\n")[1] == out


@test
def the_prompt_comes_from_standard_input(motet, _):
    server = fake()
    code, out, err = run(motet, server.url, "-", text="two\nlines, ä\r\n\n".encode())
    assert (code, out, err) == (0, "you said two\nlines, ä \n", ""), (code, out, err)
    for text, what in ((b"\n", "is empty"), (b"a\0b", "is no text"), (b"\xff", "not text in UTF-8")):
        code, out, err = run(motet, server.url, "-", text=text)
        assert (code, out) == (1, "") and what in err, (code, out, err)
    assert len(server.asked) == 1


@test
def pictures_and_videos_stand_before_the_words(motet, _):
    server = fake()
    with tempfile.NamedTemporaryFile(suffix=".mp4") as video:
        video.write(b"a video")
        video.flush()
        assert run(motet, server.url, "--image", SHAPES, "and?", "--image", SHAPES, "--video", video.name)[0] == 0
    parts = server.asked[0][0]["messages"][0]["content"]
    assert [p["type"] for p in parts] == ["image_url", "image_url", "video_url", "text"], parts
    assert base64.b64decode(parts[2]["video_url"]["url"].split(",")[1]) == b"a video"
    with open(SHAPES, "rb") as f:
        assert base64.b64decode(parts[0]["image_url"]["url"].split(",")[1]) == f.read()
    code, out, err = run(motet, server.url, "and?", "--image", "/nowhere.png")
    assert (code, out) == (1, "") and '"/nowhere.png" does not exist' in err, err


@test
def documents_stand_before_the_words(motet, tiny):
    server = fake()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "notes.md")
        with open(path, "wb") as f:
            f.write(b"# Notes")
        assert run(motet, server.url, "and?", "--file", path, "--file", "https://example.org/a.csv", "--file", "-", text=b"x")[0] == 0
        parts = server.asked[0][0]["messages"][0]["content"]
        assert [p["type"] for p in parts] == ["file", "input_file", "file", "text"], parts
        assert parts[0]["file"]["filename"] == "notes.md", parts
        assert base64.b64decode(parts[0]["file"]["file_data"].split(",")[1]) == b"# Notes"
        assert parts[1] == {"type": "input_file", "file_url": "https://example.org/a.csv", "filename": "a.csv"}, parts
        assert parts[2]["file"]["filename"] == "standard input", parts
        code, out, err = run(motet, tiny, "and?", "--file", path, "--max-tokens", "2")
        assert code == 0 and out, (code, out, err)
        code, out, err = run(motet, tiny, "and?", "--file", SHAPES)
        assert (code, out) == (1, "") and "is a picture" in err, err
    assert run(motet, tiny, "--prompt", "a", "--file", path)[0] == 2


@test
def only_the_answer_goes_into_a_pipe_and_refusals_are_status_1(motet, _):
    server = fake()
    assert run(motet, server.url, "hello") == (0, "you said hello \n", "")
    code, out, err = run(motet, server.url, "refuse")
    assert (code, out) == (1, "") and "no such thing" in err, err
    assert run(motet, "/nowhere", "hello")[0] == 1


@test
def no_proxy_is_asked_about_this_machine(motet, _):
    server = fake()
    for url in server.url, server.url.replace("127.0.0.1", "localhost"):
        assert run(motet, url, "hello", http_proxy="http://127.0.0.1:9") == (0, "you said hello \n", "")
    code, _, err = run(motet, "http://127.0.0.1.invalid", "hello", http_proxy=server.url, no_proxy="", NO_PROXY="")
    assert (code, len(server.asked)) == (0, 3), err


@test
def wrong_usage_is_status_2(motet, tiny):
    for arguments, what in (((), "give one prompt"), (("a", "--prompt", "b"), "give one prompt"),
                            (("a", "b"), "one argument too many"), (("a", "--logprobs", "2"), "goes with"),
                            (("-", "--image", "-"), "read once"), (("--prompt", "a", "--system", "b"), "go with a message"),
                            (("--prompt", "a", "--image", SHAPES), "go with a message")):
        code, out, err = run(motet, tiny, *arguments)
        assert (code, out) == (2, "") and what in err, (arguments, code, err)


@test
def a_request_says_what_options_say(motet, _):
    server = fake()
    assert run(motet, server.url, "hi", "--system", "be brief", "--temperature", "0.5", "--seed", "7", "--think", "off")[0] == 0
    body = server.asked[0][0]
    assert [m["content"] for m in body["messages"]] == ["be brief", "hi"]
    assert (body["temperature"], body["seed"]) == (0.5, 7)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    run(motet, server.url, "hi")
    assert not {"temperature", "seed", "chat_template_kwargs"} & set(server.asked[1][0])


@test
def an_answer_as_json_has_all_of_it(motet, _):
    server = fake()
    code, out, err = run(motet, server.url, "cut", "--json")
    assert (code, err) == (0, "") and out.count("\n") == 1, (code, out, err)
    assert json.loads(out) == {"content": "you said cut ", "reasoning": "hm", "finish_reason": "length"}, out


@test
def pictures_come_from_urls_and_from_standard_input(motet, _):
    server = fake()
    with open(SHAPES, "rb") as f:
        data = f.read()
    assert run(motet, server.url, "and?", "--image", "https://example.org/a.png", "--image", "-", text=data)[0] == 0
    parts = server.asked[0][0]["messages"][0]["content"]
    assert parts[0]["image_url"]["url"] == "https://example.org/a.png"
    assert base64.b64decode(parts[1]["image_url"]["url"].split(",")[1]) == data
    code, _, err = run(motet, server.url, "and?", "--image", "-")
    assert code == 1 and '"-" is empty' in err, err


@test
def nothing_is_logged_unless_it_is_asked_for(motet, tiny):
    raw = ("--prompt", "hello", "--max-tokens", "2")
    assert run(motet, tiny, *raw)[2] == ""
    assert "model.opened" in run(motet, tiny, *raw, "--log-level", "info")[2]
    assert "model.opened" in run(motet, tiny, *raw, MOTET_LOG_LEVEL="info")[2]


@test
def letters_and_a_command_tell_help_and_version(motet, _):
    said = helpers.run(motet, "--version")
    assert said[0] == 0 and said[1].startswith("motet ")
    assert helpers.run(motet, "-v") == helpers.run(motet, "version") == said
    assert helpers.run(motet, "-h") == helpers.run(motet, "--help")
    assert helpers.run(motet, "run", "-h") == helpers.run(motet, "run", "--help")
    assert helpers.run(motet, "run", "-v")[0] == 2


@test
def a_raw_prompt_sees_no_template(motet, tiny):
    code, out, _ = run(motet, tiny, "--prompt", "hello", "--json")
    assert code == 0 and out.startswith('{"prompt_token_ids":['), out


@test
def a_draft_changes_no_answer_and_is_looked_at_before(motet, _):
    model, draft = os.path.join(ORACLE, "checkpoints", "gemma4-bf16"), os.path.join(ORACLE, "drafts", "gemma4-bf16")
    raw = ("--token-ids", "1,2,3", "--max-tokens", "40", "--logprobs", "3", "--json")
    plain, drafted = run(motet, model, *raw), run(motet, model, *raw, "--draft", draft, "--log-level", "info")
    assert plain[0] == 0 and plain[:2] == drafted[:2], (plain, drafted)
    assert "draft.opened" in drafted[2], drafted[2]
    code, out, _ = helpers.run(motet, "info", draft, "--device", "cpu")
    assert code == 0 and "for a model of width 64 (--draft)" in out, out
    assert json.loads(helpers.run(motet, "info", draft, "--json", "--device", "cpu")[1])["drafts_for_hidden"] == 64
    other = os.path.join(ORACLE, "drafts", "gemma4-mlx-4bit")
    for given, code, what in ((draft, 0, ""), (other, 1, "the draft is for a model of width 128"),
                              (model, 1, "is none that guesses for another")):
        said = helpers.run(motet, "serve", model, "--check", "--port", "0", "--draft", given)
        assert said[0] == code and what in said[1] + said[2], said
    assert "as --draft" in helpers.run(motet, "serve", draft, "--check", "--port", "0")[1]


@test
def ctrl_c_ends_it_and_the_terminal_is_clean(motet, _):
    server = fake()
    terminal = helpers.Terminal(motet, "run", server.url, "for ever")
    terminal.wait("hm")
    before = terminal.wait("on on on")
    assert "\033[0m" in before, before  # thoughts are dim, and over
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "(" not in terminal.shown and terminal.shown.endswith("\n"), terminal.shown


@test
def ctrl_c_while_the_model_loads_leaves_no_server(motet, tiny):
    child = subprocess.Popen([motet, "run", tiny, "hello", "--max-tokens", "100000"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=helpers.PATIENCE)[1]
    assert child.returncode in (130, -signal.SIGINT), (child.returncode, err)
    assert not os.path.exists("/tmp/motet-chat-{}.sock".format(child.pid))


helpers.main("cli_run", TESTS, needs="fetch")
