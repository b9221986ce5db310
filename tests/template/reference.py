"""Jinja2 configured as transformers configures it for chat templates: the reference that expected results come from."""

import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: what the assistant wrote, for training masks."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _text(self, context, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment()


def render(template, context):
    """The result as a dict: "expected", or "error" with its kind ("compile", "raised", "runtime") and message."""
    try:
        compiled = ENVIRONMENT.from_string(template)
    except Exception as error:  # pylint: disable=broad-except
        return {"error": {"kind": "compile", "message": str(error)}}
    try:
        return {"expected": compiled.render(**context)}
    except Exception as error:  # pylint: disable=broad-except
        kind = "raised" if type(error) is jinja2.exceptions.TemplateError else "runtime"
        return {"error": {"kind": kind, "message": str(error)}}
