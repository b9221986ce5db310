#!/usr/bin/env python3
"""motet render: a template and a context, by a person who writes one."""
import os
import tempfile

import helpers

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def render(motet, template, context, *more):
    """Exit status, output and errors; None: a file that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in (("template.jinja", template), ("context.json", context)):
            paths.append(os.path.join(folder, name))
            if text is not None:
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
        code, out, err = helpers.run(motet, "render", *paths, *more)
        return code, out, err.replace(folder, "FOLDER")


@test
def a_template_is_rendered(motet, _):
    assert render(motet, "{{ a }} and {{ b | length }}", '{"a": "ä", "b": [1, 2]}') == (0, "ä and 2", "")


@test
def the_time_is_what_now_says(motet, _):
    text = "{{ strftime_now('%d %B %Y, %H:%M') }}"
    assert render(motet, text, "{}", "--now", "2026-01-02T03:04:05") == (0, "02 January 2026, 03:04", "")
    code, out, err = render(motet, text, "{}", "--now", "yesterday")
    assert (code, out) == (1, "") and err.startswith('motet: "--now yesterday" is no time;'), (code, out, err)


@test
def what_a_template_raises_is_told_apart_from_faults(motet, _):
    assert render(motet, "a{{ raise_exception('no ' + why) }}", '{"why": "sense"}') == (2, "", "no sense\n")
    for template, context, what in ((None, "{}", "template.jinja"), ("{% if %}", "{}", "template.jinja"),
                                    ("a", None, "context.json"), ("a", "{", "context.json"),
                                    ("{{ 1 / 0 }}", "{}", "zero")):
        code, out, err = render(motet, template, context)
        assert (code, out) == (1, "") and err.startswith("motet: ") and what in err, (template, code, out, err)


helpers.main("cli_render", TESTS)
