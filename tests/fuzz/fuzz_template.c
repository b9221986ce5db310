/* A template of arbitrary bytes, and after a NUL the JSON of its context. Whatever it does, it must end soon with a
   text whose untrusted ranges are in order, or with a sentence. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "base/utf8.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *default_context(void)
{
    return json_loads(
        "{\"s\": \"Hello <|x|> W\u00f6rld\", \"n\": 42, \"f\": 2.5, \"l\": [3, 1, 2], \"e\": \"\", \"b\": true,"
        " \"d\": {\"b\": 1, \"a\": [1, {\"x\": null}]}, \"messages\": [{\"role\": \"user\", \"content\":"
        " \"hi\\n\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\":"
        " {\"name\": \"f\", \"arguments\": {\"a\": 1.0}}}]}], \"bos_token\": \"<s>\"}",
        0, NULL);
}

static void check(const mt_rendering *r)
{
    size_t last = 0;

    for (size_t i = 0; i < r->untrusted_count; i++) {
        assert(r->untrusted[i].begin < r->untrusted[i].end && r->untrusted[i].end <= r->text.len);
        assert(i == 0 || r->untrusted[i].begin > last);
        last = r->untrusted[i].end;
    }
    for (size_t at = 0, n; at < r->text.len; at += n) {
        n = mt_utf8_length(r->text.data + at, r->text.len - at);
        assert(n > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mt_template_options options = {.steps = 20000, .memory = 4u << 20, .output = 1u << 16};
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    const size_t len = end ? (size_t)(end - data) : size;
    mt_error err = {0};
    mt_template *tpl = mt_template_compile((const char *)data, len, &err);
    json_t *context = NULL;
    mt_rendering r;

    if (!tpl) {
        assert(err.code != MT_OK && strncmp(err.text, "line ", 5) == 0);
        return 0;
    }
    if (end)
        context = json_loadb((const char *)end + 1, size - len - 1, JSON_ALLOW_NUL, NULL);
    if (!context)
        context = default_context();
    if (mt_template_render_json(tpl, context, &options, &r, &err))
        check(&r);
    else
        assert(err.code != MT_OK && (r.raised || strlen(err.text) > 0));
    mt_rendering_free(&r);
    mt_template_free(tpl);
    json_decref(context);
    return 0;
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/* Bytes alone seldom make a template, so half of the time a piece of one is put in. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static const char *const pieces[] = {"{{ ",
                                     " }}",
                                     "{% ",
                                     " %}",
                                     "{%- ",
                                     "-%}",
                                     "{# ",
                                     " #}",
                                     "{% if ",
                                     "{% endif %}",
                                     "{% for i in ",
                                     "{% endfor %}",
                                     "{% else %}",
                                     "{% set x = ",
                                     "{% set x %}",
                                     "{% endset %}",
                                     "{% macro m(a, b=1) %}",
                                     "{% endmacro %}",
                                     "m(1)",
                                     "{% call m() %}",
                                     "{% endcall %}",
                                     "caller()",
                                     "{% filter upper %}",
                                     "{% endfilter %}",
                                     "{% with x=1 %}",
                                     "{% endwith %}",
                                     "{% raw %}",
                                     "{% endraw %}",
                                     "{% break %}",
                                     "{% continue %}",
                                     "{% generation %}",
                                     "{% endgeneration %}",
                                     "namespace(a=1)",
                                     "range(9)",
                                     "loop.index",
                                     "loop.last",
                                     "loop(l)",
                                     " recursive",
                                     "s",
                                     "n",
                                     "f",
                                     "l",
                                     "d",
                                     "messages",
                                     "nosuch",
                                     "x",
                                     "i",
                                     "[0]",
                                     "[1:]",
                                     "[::-1]",
                                     "[-1]",
                                     ".x",
                                     ".items()",
                                     ".keys()",
                                     ".get('a')",
                                     ".split(' ')",
                                     ".strip()",
                                     ".upper()",
                                     ".replace('a', 'b')",
                                     ".format(1, a=2)",
                                     ".join(l)",
                                     ".startswith('a')",
                                     "|length",
                                     "|upper",
                                     "|join(',')",
                                     "|map('upper')",
                                     "|map(attribute='role')",
                                     "|select('odd')",
                                     "|list",
                                     "|tojson",
                                     "|tojson(indent=2)",
                                     "|sort",
                                     "|unique",
                                     "|groupby('role')",
                                     "|batch(2)",
                                     "|slice(2)",
                                     "|first",
                                     "|last",
                                     "|reverse",
                                     "|int",
                                     "|float",
                                     "|round(1)",
                                     "|default('x')",
                                     "|replace('a', 'b')",
                                     "|indent",
                                     "|trim",
                                     "|safe",
                                     "|e",
                                     "|sum",
                                     "|min",
                                     "|dictsort",
                                     "|items",
                                     "|string",
                                     "|urlencode",
                                     "|truncate(5)",
                                     "|title",
                                     "|format(1)",
                                     "|xmlattr",
                                     " is defined",
                                     " is string",
                                     " is odd",
                                     " is divisibleby 2",
                                     " in ",
                                     " not in ",
                                     " and ",
                                     " or ",
                                     "not ",
                                     " if ",
                                     " else ",
                                     " + ",
                                     " - ",
                                     " * ",
                                     " / ",
                                     " // ",
                                     " % ",
                                     " ** ",
                                     " ~ ",
                                     " == ",
                                     " < ",
                                     "'a'",
                                     "'%s %d'",
                                     "'{:>5}'",
                                     "1",
                                     "0",
                                     "-1",
                                     "2.5",
                                     "9223372036854775807",
                                     "none",
                                     "true",
                                     "(1, 2)",
                                     "[1, 'a']",
                                     "{'a': 1}",
                                     "*l",
                                     "**d",
                                     ", "};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const char *piece = pieces[(seed >> 1) % (sizeof(pieces) / sizeof(pieces[0]))];
    const size_t len = strlen(piece), at = size ? (seed >> 9) % (size + 1) : 0;

    if (seed % 2 == 0 || size + len > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memmove(data + at + len, data + at, size - at);
    memcpy(data + at, piece, len);
    return size + len;
}
#endif
