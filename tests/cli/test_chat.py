#!/usr/bin/env python3
"""motet chat, as a person at a terminal and a script at a pipe have it."""
import base64
import os
import subprocess
import tempfile
import time

import helpers
from helpers import eventually, fake

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def pipe(program, arguments, text):
    return helpers.run(program, "chat", *arguments, text=text.encode())


@test
def a_script_talks_through_a_pipe(motet, _):
    server = fake()
    code, out, err = pipe(motet, [server.url, "--api-key", "secret"], "/system be brief\nhello\ncut\n/reset\nagain\n")
    assert (code, err) == (0, ""), (code, err)
    assert "you said hello" in out and "you said again" in out and "(cut off" in out, out
    assert "\033" not in out and out.startswith("hm\n\nyou said"), out
    first, second, third = [body for body, _ in server.asked]
    assert first["stream"] and first["model"] == "parrot"
    assert [m["content"] for m in first["messages"]] == ["be brief", "hello"]
    assert [m["content"] for m in second["messages"]] == ["be brief", "hello", "you said hello ", "cut"]
    assert [m["content"] for m in third["messages"]] == ["be brief", "again"]
    assert all(key == "Bearer secret" for _, key in server.asked)


@test
def a_refused_question_is_taken_back(motet, _):
    server = fake()
    code, out, err = pipe(motet, [server.url], "refuse\nhello\n")
    assert code == 0 and "the server says: no such thing" in err and "you said hello" in out, (code, out, err)
    assert len(server.asked[1][0]["messages"]) == 1
    assert pipe(motet, [server.url], "refuse\n")[0] == 1


@test
def a_picture_goes_with_the_next_words(motet, _):
    server = fake()
    with tempfile.NamedTemporaryFile(suffix=".png") as picture:
        picture.write(b"\x89PNG picture")
        picture.flush()
        code, out, _ = pipe(motet, [server.url], "/image {}\n/image /none\nwhat is it?\nand now?\n".format(picture.name))
    assert code == 0 and "1 picture goes" in out and '"/none" does not exist' in out, out
    parts = server.asked[0][0]["messages"][0]["content"]
    assert [p["type"] for p in parts] == ["image_url", "text"], parts
    assert base64.b64decode(parts[0]["image_url"]["url"].split(",")[1]) == b"\x89PNG picture"
    assert server.asked[1][0]["messages"][2]["content"] == "and now?"


@test
def a_folder_is_served_for_the_while(motet, tiny):
    code, out, err = pipe(motet, [tiny, "--default-max-tokens", "8"], "hello\n")
    assert code == 0 and out.strip() and err == "", (code, out, err)
    code, _, err = pipe(motet, ["/nowhere"], "hello\n")
    assert code == 1 and '"/nowhere" does not exist' in err, err
    code, _, err = pipe(motet, ["http://127.0.0.1:9"], "")
    assert code == 1 and "no server answers" in err, err


@test
def a_terminal_edits_remembers_and_stays_clean(motet, _):
    server = fake()
    with tempfile.TemporaryDirectory() as home:
        t = helpers.Terminal(motet, "chat", server.url, home=home)
        t.wait("Ctrl-D leaves")
        t.prompt()
        t.type("helo\033[D\033[Dl\r")  # back twice, and the missing letter
        t.wait("you said hello")
        t.prompt()
        t.type("lost words\x03")
        t.wait("^C")
        t.prompt()
        t.type("\033[A\r")  # the line before
        t.wait("you said hello")
        t.prompt()
        t.type("for ever\r")
        t.wait("on on on")
        assert t.echoes()
        t.type("\x03")
        t.wait("(interrupted)")
        t.prompt()
        t.type("\x04")
        assert t.end() == 0
        assert server.asked[0][0]["messages"][-1]["content"] == "hello"
        assert len(server.asked) == 3
        t = helpers.Terminal(motet, "chat", server.url, home=home)
        t.prompt()
        t.type("\033[A\033[A\r")  # of the time before
        t.wait("you said hello")
        t.prompt()
        t.type("/quit\r")
        assert t.end() == 0


@test
def killed_at_any_time_it_leaves_no_server(motet, tiny):
    for when in 0, 0.002, 0.005, 0.01, 0.02, 0.3:
        child = subprocess.Popen([motet, "chat", tiny], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        time.sleep(when)
        child.kill()
        child.wait()
        assert eventually(lambda: not helpers.running(tiny))
        for name in os.listdir("/tmp"):
            if name.startswith("motet-chat-{}.".format(child.pid)):
                os.unlink(os.path.join("/tmp", name))


helpers.main("cli_chat", TESTS)
