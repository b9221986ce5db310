#!/usr/bin/env python3
"""Writes random templates and compares what motet and Jinja2 make of them.

usage: tests/template/generate.py RENDER_LINES SEED COUNT    compare that many templates, print what differs
       tests/template/generate.py --record SEED COUNT        write cases/random.json, which the unit tests run

Needs Jinja2 3.1.6, the release motet follows. Templates are made from a grammar that knows the types of expressions,
so that most of them mean something; a few are wrong on purpose. Left out are results with an address in them, and
those where an integer leaves 64 bits, which motet refuses."""

import copy
import json
import os
import random
import re
import subprocess
import sys
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.join(FOLDER, "sources")]
sys.dont_write_bytecode = True

import reference  # noqa: E402
from context import CONTEXT  # noqa: E402
from make import is_kept  # noqa: E402

TYPES = ["str", "int", "float", "bool", "list", "strs", "dict", "any"]
NAMES = {
    "str": ["s", "u", "e", "ws", "lines", "html", "keys", "users[0].name", "messages[1]['content']", "d.C.x"],
    "int": ["n", "neg", "z", "l[0]", "l[-1]", "users[1].age", "d.b", "loop.index0", "ns.i"],
    "float": ["f"],
    "bool": ["t"],
    "list": ["l", "users", "messages", "nested", "items", "d.a", "users[0].tags", "messages[1].tool_calls"],
    "strs": ["ls", "s.split()", "lines.splitlines()", "d.keys()|list", "users|map(attribute='name')|list"],
    "dict": ["d", "users[0]", "messages[1]", "nested[0]", "messages[1].tool_calls[0].function.arguments"],
    "any": ["nn", "nosuch", "d.nosuch", "users[2].tags", "l[9]", "item", "ns.x", "s.nosuch", "nosuch.deep"],
}
TEXTS = ["", "a", "o", "l", " ", "\\n", "Hello", "x<y", "ß", "é😀", "a,b,,c", "0", "12", "-3.5", "1e3", "0x1F", "%s", "%",
         "٣", "１２", "-৪২", "²", "१.५", "1_0", "name", "b", "A b-c d", "'q'", '"', "\\\\", "Bob\\tx", "aXbXc", "{}", "user", "ab" * 3]
NUMBERS = ["0", "1", "2", "3", "-1", "-2", "5", "7", "10", "100", "1_000", "0x1f", "0b101", "0o17"]
REALS = ["0.5", "2.5", "-1.25", "1e3", "1.0", "3.14159", "1e-7", "1e16", "123456789.123", "-0.0"]
FORMATS = ["%d", "%5d", "%-5d|", "%05d", "%+d", "%x", "%X", "%#o", "%s", "%r", "%10s", "%-10s|", "%.2s", "%.2f", "%8.3f",
           "%e", "%g", "%G", "%c", "%%", "%i", "% d", "%a", "%5.1f%%", "%5%", "%ld", "%lld", "%*d", "%.*f", "%(a)s", "%(b)d|%s",
           "%(name)5s", "%(a", "%(a)*d", "%.3d", "%#x", "%y", "%", "x"]
SPECS = ["", ":>8", ":<8", ":^8", ":*^9", ":05d", ":+", ":,", ":_", ":x", ":#x", ":b", ":.2f", ":.3g", ":e", ":%", ":.1%",
         "!r", "!s", "!a", "!r:>9", ":>{1}", ":n", ":c", ":10.3s", ":=+8", ":g", ":,.2f"]

# What a type can be made of; $type stands for an expression of it. $text, $int and $name are plain words.
RULES = {
    "str": [
        "$str ~ $any", "$str + $str", "$str * $small", "$str[$slice]", "$str[$small]", "$str|upper", "$str|lower",
        "$str|title", "$str|capitalize", "$str|trim", "$str|trim('$text')", "$str|replace('$text', $str)",
        "$str|replace('$text', '$text', $small)", "$list|join", "$strs|join('$text')", "$list|join(', ')",
        "$list|join('-', attribute='name')", "$any|string", "$any|tojson", "$any|tojson(indent=$small)",
        "$any|tojson(separators=(',', ':'))", "$any|tojson(ensure_ascii=true)", "$any|tojson(sort_keys=true, indent=2)",
        "$str|indent", "$str|indent($small)", "$str|indent(2, true)", "$str|indent(width='> ', blank=true)",
        "$str|truncate(8)", "$str|truncate(5, true)", "$str|truncate(7, false, '…', 0)", "$str|center(20)",
        "$str|escape", "$str|e|upper", "$str|safe", "$str|urlencode", "$str|default('x')", "$any|default('$text', true)",
        "$strs|first", "$strs|last", "$strs|min", "$strs|max", "$str|reverse", "$str.upper()", "$str.lower()",
        "$str.strip()", "$str.strip('$text')", "$str.lstrip()", "$str.rstrip('$text')", "$str.replace('$text', '$text')",
        "$str.replace('$text', '$text', $small)", "$str.title()", "$str.capitalize()", "$str.swapcase()",
        "$str.center(12, '*')", "$str.ljust(9)", "$str.rjust(9, '.')", "$str.zfill(6)", "$str.join($strs)",
        "'$text'.join($strs)", "$str.removeprefix('$text')", "$str.removesuffix('$text')", "$str.casefold()",
        "$str.expandtabs(4)", "$str.split('$text')[0]", "$str.split('$text')[-1]", "$str.partition('$text')[2]",
        "$str.rpartition('$text')|join('|')", "'$format' % $any", "'$format $format' % ($any, $any)", "'$format'|format($any)",
        "'%(a)s %(b)$pct' % {'a': $any, 'b': $any}", "'{$spec}'.format($any, 6)", "'{0$spec} {1} {0}'.format($any, $any)",
        "'{k$spec}{k.x}{k[0]}'.format(k=$any)", "$str if $bool else $str", "($str if $bool)", "$dict.role", "$strs[$small]",
        "$str|list|join('.')", "strftime_now('%Y-%m-%d %H:%M %b %A %j')", "$any|e", "$float|round(2)|string",
    ],
    "int": [
        "$int + $int", "$int - $int", "$int * $small", "$int // $int", "$int % $int", "-$int", "+$int", "$small ** $small",
        "$list|length", "$str|length", "$dict|count", "$list|sum", "$any|int", "$str|int(7)", "$str|int(0, 16)", "$int|abs",
        "$str|wordcount", "$str.find('$text')", "$str.rfind('$text')", "$str.count('$text')", "$list.index($int)",
        "$list.count($int)", "$list|sum(start=$int)", "$users|sum(attribute='age')", "$list|map('int')|max",
        "$str.index('$text')", "$float|int", "$int if $bool else $int", "$bool + $int", "$l|min", "$l|max", "$l|first",
    ],
    "float": [
        "$int / $int", "$float * $int", "$float + $float", "$any|float", "$str|float(1.5)", "$float|round",
        "$float|round(1)", "$float|round(2, 'floor')", "$float|round(1, 'ceil')", "$int ** -1", "$float // $int",
        "$float % $int", "$float|abs", "$int * $float", "$int|round(-1)",
    ],
    "bool": [
        "$any == $any", "$any != $any", "$int < $int", "$int <= $float", "$str > $str", "$list >= $list", "$int < $int < $int",
        "'$text' in $str", "$any in $list", "$str not in $dict", "$any and $any", "$any or $any", "not $any",
        "$any is defined", "$any is undefined", "$any is none", "$any is not none", "$any is string", "$any is number",
        "$any is mapping", "$any is iterable", "$any is sequence", "$any is boolean", "$any is integer", "$any is float",
        "$any is true", "$any is false", "$any is callable", "$int is odd", "$int is even", "$int is divisibleby $small",
        "$int is divisibleby(3)", "$str is lower", "$str is upper", "$any is sameas $any", "$any is eq $any", "$any is ne 1",
        "$int is gt $int", "$int is le(2)", "$any is in $list", "$any is not in $strs", "$str is in($str)",
        "'upper' is filter", "'odd' is test", "$str.startswith('$text')", "$str.endswith(('$text', '$text'))",
        "$str.isdigit()", "$str.isalpha()", "$str.isalnum()", "$str.isspace()", "$str.isupper()", "$str.islower()",
        "$str.istitle()", "$str.isnumeric()", "$str.isidentifier()", "$str.startswith('$text', 1)", "$str.isascii()",
        "$str|e is escaped", "$any is equalto $any and $bool", "not $any is none", "$int == $float",
    ],
    "list": [
        "[$any, $any]", "[]", "($any, $any)", "($any,)", "$list + $list", "$list * $small", "$list[$slice]", "$list|list",
        "$list|reverse|list", "$l|sort", "$l|sort(reverse=true)", "$users|sort(attribute='age')",
        "$users|sort(attribute='name', case_sensitive=true)", "$users|sort(attribute='age,name')|map(attribute='name')|list",
        "$list|unique|list", "$users|unique(attribute='age')|list", "$list|map('string')|list", "$list|select|list",
        "$list|select('string')|list", "$list|reject('none')|list", "$l|select('odd')|list", "$l|select('gt', 1)|list",
        "$users|selectattr('tags')|list", "$users|selectattr('age', 'equalto', 30)|list", "$users|rejectattr('age', 'lt', 30)|list",
        "$messages|selectattr('role', 'eq', 'user')|list", "$users|map(attribute='tags', default=$any)|list",
        "$users|groupby('age')|map('first')|list", "$users|groupby('age')|list", "$users|groupby('nosuch', default='-')|list",
        "$list|batch(2)|list", "$list|batch(2, $any)|list", "$list|slice(2)|list", "$list|slice(3, '-')|list", "$dict.values()|list",
        "$dict.items()|list", "$dict|items|list", "$dict|dictsort", "$dict|dictsort(by='value')", "$dict|dictsort(true, reverse=true)",
        "range($small)|list", "range($small, 9, 2)|list", "range(5, $small, -1)|list", "range(9)[$slice]|list", "$list.copy()",
        "$list if $bool else $list", "$str|list", "$l|map('float')|list", "$dict|list", "$nested|map(attribute='c')|list",
        "$list|list|first|default([], true)", "$strs|map('length')|list", "$strs|map('replace', '$text', 'z')|list", "$l|map('abs')|list",
    ],
    "strs": [
        "$str.split('$text')", "$str.split()", "$str.split('$text', $small)", "$str.rsplit('$text', 1)", "$str.splitlines()",
        "$str.splitlines(true)", "$strs|sort", "$strs|sort(case_sensitive=true)", "$strs|map('upper')|list", "$strs[$slice]",
        "$strs + $strs", "$strs|reverse|list", "$strs|unique|list", "$strs|select('in', 'abc')|list", "$str|list", "$str.partition('$text')",
        "$strs|reject('equalto', '$text')|list", "$strs|map('trim', 'a')|list",
    ],
    "dict": [
        "{'a': $any, 'b': $any}", "{}", "{$str: $any}", "{1: $any, true: $any}", "dict($dict, z=$any)", "dict(a=$any)", "dict([['k', $any]])",
        "$dict.copy()", "$dict if $bool else $dict", "$users|first", "$list|last", "dict($strs|map('list'))", "{**$dict}" ,
    ],
    "any": [
        "$dict['$text']", "$dict.get('$text')", "$dict.get('name', $any)", "$dict.name", "$list[$small]", "$any[0]", "$any.x",
        "$list|first", "$list|last", "$any|default($any)", "$any|d($any, true)", "$dict|attr('name')", "$list|random", "($any)", "none",
        "$any if $any else $any", "$list|max", "$list|min(attribute='age')", "namespace(x=$any).x", "$any|string|length", "$any + $any",
        "$any ~ $any", "$any[$slice]", "$any|list", "$any.items()", "$any|length", "$any < $any", "$any|upper", "$any()", "$any|$name",
    ],
}
SPECIFIC = {"$users": "users", "$messages": "messages", "$nested": "nested", "$l": "l"}
FILTERS = ["abs", "capitalize", "count", "first", "float", "int", "items", "last", "length", "list", "lower", "max", "min", "reverse",
           "sort", "string", "sum", "title", "tojson", "trim", "unique", "upper", "wordcount", "dictsort", "e", "nosuch"]
BODIES = [
    "{% block $block %}$body{% endblock %}", "{% block $block scoped %}{{ item }}{{ loop.index }}$body{% endblock %}", "{{ self.$known() }}",
    "{% set v = $any %}{% block $block %}{% for item in $list %}{{ v }}{{ item }}{% endfor %}{% endblock %}{{ self.$known()|upper }}",
    "{% block $block %}{{ v }}{% set v = $any %}{{ v }}{% if $bool %}{% set w = 1 %}{% endif %}{{ w }}{% endblock %}{{ v }}{{ w }}",
    "{% for item in $list %}{% block $block scoped %}{% block $block %}{{ item }}{% endblock %}{% endblock %}{% set v = item %}{% endfor %}",
    "{{ self.$known is defined }}{{ self['$known'] is callable }}{{ self }}", "{% macro m(a) %}{% block $block %}{{ a }}{{ v }}{% endblock %}{% endmacro %}{{ m($any) }}",
    "{{ $any }}", "$word{{ $str }}", "{%- if $bool %}$body{% elif $any %}$body{%- else -%}$body{% endif %}",
    "{% for item in $list %}$body{% else %}none{% endfor %}", "{%- for item in $list if $bool -%}\n$body\n{%- endfor %}",
    "{% for k, v in $dict.items() %}{{ k }}={{ v }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for k, item in $dict|dictsort %}{{ loop.index }}/{{ loop.length }}{{ k }}$body{% endfor %}",
    "{% for item in $list recursive %}[{{ item }}{{ loop.depth }}{% if item is mapping and item.c %}{{ loop(item.c) }}{% endif %}]{% endfor %}",
    "{% for item in $list %}{% if $bool %}{% break %}{% elif $bool %}{% continue %}{% endif %}$body{% endfor %}",
    "{% for item in $list %}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}"
    "{{ loop.cycle('a', 'b') }}{{ loop.changed(item) }}\n{% endfor %}",
    "{% set v = $any %}{{ v }}", "{% set v %}$body{% endset %}{{ v|upper }}", "{% set v | trim %} $body {% endset %}{{ v }}",
    "{% set a, b = $any, $any %}{{ a }}{{ b }}", "{% set ns.i = ns.i + 1 %}{{ ns.i }}", "{% set ns.x = $any %}{{ ns.x }}",
    "{% with v = $any, w = 1 %}{{ v }}{{ w }}$body{% endwith %}{{ v }}", "{% filter $name %}$body{% endfilter %}",
    "{% macro m(a, b=$any, c='$text') %}<{{ a }}|{{ b }}|{{ c }}{{ varargs }}{{ kwargs }}>{% endmacro %}{{ m($any) }}{{ m($any, c=$any) }}",
    "{% macro m(a) -%}\n  ({{ a }}{{ caller(a) if caller }}) {%- endmacro %}{% call(q) m($any) %}$body{{ q }}{% endcall %}{{ m($any, 1, k=2) }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "{# $word #}", "{#- c -#} ", "  {% if $bool %}\n  $word\n  {% endif %}\n", "\n  {%+ if $bool %}x{% endif +%}\n",
    "{{- $any -}}  \n", "  {%- set v = 1 -%}\n\n $word", "{% generation %}$body{% endgeneration %}", "{% if $bool %}{{ raise_exception($str) }}{% endif %}",
    "{{ $any if $bool }}\n", "$body$body", "$body\n$body", "{% for item in range($small) %}{{ item }}{% endfor %}", "\t{% if true %} $word {% endif %}\t\n",
    "{% for a, b in $list %}{{ a }}{{ b }}{% endfor %}", "{% if $any %}y{% else %}n{% endif %}", "{{ $bool }}", "{{ $list }}", "{{ $dict }}", "{{ $float }}",
    "{% do x %}" , "{{ cycler('a', 'b').next() }}", "{% set j = joiner('|') %}{% for item in $list %}{{ j() }}{{ item }}{% endfor %}", "{{ $int }}", "{{ $strs }}",
]
FOLDED = re.compile(r"[\d.]\)*\[[^]]*:|(true|false|none)\[", re.I)  # Jinja2 folds these to something undefined
WORDS = ["x", " y ", "<|a|>\n", "\n\n", "é", "  z", "{ }", "%}", "}}", "#"]


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.blocks = 0  # in the template at hand

    def pick(self, items):
        return items[self.random.randrange(len(items))]

    def literal(self, kind):
        if kind == "str":
            return self.pick(["'{}'", '"{}"']).format(self.pick(TEXTS).replace("'", "\\'").replace('"', '\\"'))
        if kind in ("int", "float"):
            return self.pick(NUMBERS if kind == "int" else REALS)
        if kind == "bool":
            return self.pick(["true", "false", "True", "False"])
        return self.pick(NAMES[kind])

    def expression(self, kind, depth):
        if self.random.random() < 0.04:
            kind = self.pick(TYPES)
        if kind == "any" and self.random.random() < 0.8:
            kind = self.pick(TYPES)
        if depth <= 0 or self.random.random() < 0.25:
            return self.literal(kind) if self.random.random() < 0.3 else self.pick(NAMES[kind])
        text = self.expand(self.pick(RULES[kind]), depth - 1)
        return text if self.random.random() < 0.3 else "(" + text + ")"

    def expand(self, rule, depth):
        parts = rule.split("$")
        out = [parts[0]]
        for part in parts[1:]:
            length = 0
            while length < len(part) and part[length].isalpha():
                length += 1
            out.append(self.word(part[:length], depth) + part[length:])
        return "".join(out)

    def slice(self):
        ends = ["", "", "0", "1", "2", "-1", "-2", "5", "none"]
        step = self.pick(["", "", ":", ":1", ":2", ":-1", ":-2", ":0"])
        return self.pick(ends) + ":" + self.pick(ends) + step

    def word(self, name, depth):
        simple = {"text": TEXTS, "format": FORMATS, "spec": SPECS, "name": FILTERS, "word": WORDS, "pct": ["s", "r", "d", "5.1f"]}
        if name in simple:
            return self.pick(simple[name]).replace("'", "\\'") if name == "text" else self.pick(simple[name])
        if name == "block":
            self.blocks += self.random.random() < 0.97
            return "q{}".format(self.blocks)
        if name == "known":
            return "q{}".format(self.random.randrange(self.blocks + 1))
        if name == "slice":
            return self.slice()
        if name == "small":
            return self.pick(["0", "1", "2", "3", "-1", "4"])
        if name == "body":
            return self.body(depth)
        if "$" + name in SPECIFIC:
            return SPECIFIC["$" + name]
        return self.expression(name, depth)

    def body(self, depth):
        if depth <= 0:
            return self.pick(["{{ item }}", "{{ s }}", "x", "", "{{ loop.index }}", "{{ v }}"])
        return self.expand(self.pick(BODIES), depth - 1)

    def template(self):
        self.blocks = 0
        if self.random.random() < 0.5:
            return "{{ " + self.expression(self.pick(TYPES), self.random.randrange(1, 5)) + " }}"
        text = "{% set ns = namespace(i=0) %}" + self.body(self.random.randrange(2, 5))
        if self.random.random() < 0.03:  # a few that are wrong
            at = self.random.randrange(len(text))
            text = text[:at] + text[at + self.random.randrange(1, 4):]
        return text


def cases(seed, count):
    grammar = Grammar(seed)
    while count > 0:
        template = grammar.template()
        if "random" in template or len(template) > 600 or FOLDED.search(template):
            continue
        result = reference.render(template, copy.deepcopy(CONTEXT))
        text = json.dumps(result)
        if len(text) > 20000 or re.search("object at 0x|generator", text, re.I) or not is_kept(template, result):
            continue
        count -= 1
        yield dict(template=template, **result)


def agrees(case, answer):
    if "error" not in case:
        return answer.get("text") == case["expected"]
    if "error" not in answer:
        return False
    kind = "compile" if answer["compile"] else "raised" if answer["raised"] else "runtime"
    return kind == case["error"]["kind"] and (kind != "raised" or case["error"]["message"].startswith(answer["error"]))


def compare(program, seed, count):
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    same = differ = left_out = 0
    for case in cases(seed, count):
        child.stdin.write(json.dumps({"template": case["template"], "context": CONTEXT, "now": "2026-01-02T03:04:05"}) + "\n")
        child.stdin.flush()
        answer = json.loads(child.stdout.readline() or '{"error": "the program ended", "raised": false, "compile": false}')
        if agrees(case, answer):
            same += 1
        elif "64 bits" in answer.get("error", ""):
            left_out += 1
        else:
            differ += 1
            print(json.dumps({"case": case, "answer": answer}, ensure_ascii=False))
    child.stdin.close()
    child.wait()
    print("random templates: {} the same, {} differ, {} left out".format(same, differ, left_out))
    return differ == 0


def record(seed, count):
    with open(os.path.join(FOLDER, "cases", "random.json"), "w", encoding="utf-8") as out:
        out.write('{{"context": {},\n"cases": [\n'.format(json.dumps(CONTEXT, ensure_ascii=False)))
        out.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases(seed, count)))
        out.write("\n]}\n")
    return True


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    work, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    done = record(seed, count) if work == "--record" else compare(work, seed, count)
    sys.exit(0 if done else 1)


main()
