#!/usr/bin/env python3
"""motet chat, as a person at a terminal and a script at a pipe have it."""
import base64
import json
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
def a_document_goes_with_the_next_words(motet, _):
    server = fake()
    with tempfile.NamedTemporaryFile(suffix=".txt") as notes:
        notes.write(b"some notes")
        notes.flush()
        code, out, _ = pipe(motet, [server.url], "/file {}\n/file /none\nwhat is it?\n".format(notes.name))
    assert code == 0 and "the file goes" in out and '"/none" does not exist' in out, out
    parts = server.asked[0][0]["messages"][0]["content"]
    assert [p["type"] for p in parts] == ["file", "text"], parts
    assert base64.b64decode(parts[0]["file"]["file_data"].split(",")[1]) == b"some notes"


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
def letters_of_all_languages_are_typed(motet, _):
    server = fake()
    t = helpers.Terminal(motet, "chat", server.url)
    t.prompt()
    t.type("gr\u00fc\u00dfe, \u65e5\u672c \U0001f600\r")
    t.wait("you said")
    t.prompt()
    t.type("\u00e4x\x7f\x7fb\r")  # both letters are taken back
    t.wait("you said b")
    t.prompt()
    t.type("\x04")
    assert t.end() == 0
    assert [body["messages"][-1]["content"] for body, _ in server.asked] == ["grüße, 日本 😀", "b"]


@test
def ctrl_c_at_an_empty_prompt_leaves_the_second_time(motet, _):
    t = helpers.Terminal(motet, "chat", fake().url)
    t.prompt()
    t.type("\x03")
    t.wait("(Ctrl-C again leaves)")
    t.prompt()
    t.type("no\x03")  # not in a row
    t.wait("^C")
    t.prompt()
    t.type("\x03")
    t.wait("(Ctrl-C again leaves)")
    t.prompt()
    t.type("\x03")
    assert t.end() == 0


@test
def words_stay_whole_at_the_edge(motet, _):
    t = helpers.Terminal(motet, "chat", fake().url, columns=20)
    t.prompt()
    t.type("seven letters for every one of these\r")
    shown = t.wait("these \r\n")
    assert "\033[K\r\nletters" in shown and "lett\r\n" not in shown, shown
    t.prompt()
    t.type("\x04")
    assert t.end() == 0


@test
def tab_knows_commands_and_files(motet, _):
    server = fake()
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "pictures"))
        for name in "my cat.png", "my dog.png":
            with open(os.path.join(home, "pictures", name), "wb") as f:
                f.write(b"\x89PNG")
        t = helpers.Terminal(motet, "chat", server.url, home=home)
        t.prompt()
        t.type("/im\t~/pic\tm\t\t")
        t.wait("my cat.png  my dog.png")
        t.type("d\t\r")
        t.wait("1 picture goes")
        t.prompt()
        t.type("/sys\tbe kind\r")
        t.wait("the model is told: be kind")
        t.prompt()
        t.type("/reset\r")
        t.wait("a new conversation, with the same system text")
        t.prompt()
        t.type("/nothing\r")
        t.wait('"/nothing" is no command; /help lists them')
        t.prompt()
        t.type("\x04")
        assert t.end() == 0


@test
def pictures_are_named_as_people_write_them(motet, _):
    server = fake()
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "a b.png"), "wb") as f:
            f.write(b"\x89PNG")
        lines = ["/image ~/a\\ b.png", "/image '{}/a b.png'".format(home), '/image "{}/a b.png" '.format(home),
                 "/image ~/a b.png", "/image https://example.org/c.png", "look"]
        code, out, _ = helpers.run(motet, "chat", server.url, text="\n".join(lines).encode(), HOME=home)
    assert code == 0 and "5 pictures go" in out, out
    parts = server.asked[0][0]["messages"][0]["content"]
    assert [p["image_url"]["url"][:22] for p in parts[:4]] == ["data:image/*;base64,iV"] * 4, parts
    assert parts[4]["image_url"]["url"] == "https://example.org/c.png"


@test
def an_unknown_command_is_said_and_not_sent(motet, _):
    server = fake()
    code, out, err = pipe(motet, [server.url], "/imag x\nhello\n")
    assert code == 0 and '"/imag" is no command' in err and "you said hello" in out, (out, err)
    assert len(server.asked) == 1


@test
def a_host_and_a_port_are_a_url(motet, _):
    server = fake()
    code, out, err = pipe(motet, ["127.0.0.1:{}".format(server.server_port)], "hello\n")
    assert (code, err) == (0, "") and "you said hello" in out, (code, out, err)


@test
def a_conversation_is_saved_loaded_and_answered_again(motet, _):
    server = fake()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "talk.json")
        code, out, err = pipe(motet, [server.url, "--system", "be brief"],
                              "one\n/regenerate\n/save {0}\n/save {0}\n/save /dev/null\n".format(path))
        assert code == 0 and '"/dev/null" is there already' in out, (out, err)
        assert [m["content"] for m in server.asked[1][0]["messages"]] == ["be brief", "one"]
        server.asked.clear()
        code, out, err = pipe(motet, [server.url], "/load {}\ntwo\n/load /dev/null\n".format(path))
        assert code == 0 and '"/dev/null" cannot be read' in out, (out, err)
    assert [m["content"] for m in server.asked[0][0]["messages"]] == ["be brief", "one", "you said one ", "two"]


@test
def calls_are_shown_and_a_person_says_what_they_give(motet, _):
    server = fake()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as tools:
        json.dump([{"name": "sum", "description": "adds"}], tools)
        tools.flush()
        code, out, err = pipe(motet, [server.url], "/tools {}\n/tools\ncall\n3\n/tools none\nend\n".format(tools.name))
    assert (code, err) == (0, "") and "sum: adds" in out and 'sum({"a": 1, "b": 2})' in out, (out, err)
    first, second, third = [body for body, _ in server.asked]
    assert first["tools"] == [{"type": "function", "function": {"name": "sum", "description": "adds"}}]
    assert second["messages"][1]["tool_calls"][0]["function"] == {"name": "sum", "arguments": '{"a": 1, "b": 2}'}
    assert second["messages"][2] == {"role": "tool", "content": "3", "tool_call_id": "c1"}
    assert "tools" not in third and third["messages"][-2]["content"] == "you said 3 "
    assert len(pipe(motet, [server.url], "call\n")[1]) > 0  # the input ends where a result should be


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


helpers.main("cli_chat", TESTS, needs="fetch")
