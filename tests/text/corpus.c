/* Checks recorded answers of the tokenizers library against motet's.

   usage: text_corpus VECTORS.jsonl FOLDER [NAME]     NAME: of what is counted

   A line has: tokenizer (FOLDER/<tokenizer>.json, .gguf or FOLDER/<tokenizer>/tokenizer.json), text, ids, ids_special,
   decoded (of ids), and decoded_skip_special (of ids_special); ids_special and decoded_skip_special may be left out
   where they are the same as the other one. Without text, only decoding is checked. Instead of the answers a line may
   have "like", another tokenizer that has to give the same. Lines of one tokenizer stand together. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/limits.h"
#include "text/tokenizer.h"
#include "weights/gguf_tokenizer.h"
#include "weights/limits.h"

enum { MOST_SHOWN = 20 };

static size_t shown;

static void show(const char *tokenizer, const char *what, const json_t *text, const char *got)
{
    char *wanted = json_dumps(text, JSON_ENCODE_ANY);

    if (shown++ < MOST_SHOWN)
        printf("%s: %s of %.200s: %.400s\n", tokenizer, what, wanted ? wanted : "?", got);
    free(wanted);
}

/* The value of a key, or of the one that stands for it where it is left out. */
static const json_t *get(const json_t *line, const char *key)
{
    const json_t *value = json_object_get(line, key);

    if (!value && strcmp(key, "ids_special") == 0)
        return json_object_get(line, "ids");
    return value || strcmp(key, "decoded_skip_special") != 0 ? value : json_object_get(line, "decoded");
}

static bool same_ids(const mt_ids *ids, const json_t *wanted)
{
    if (ids->count != json_array_size(wanted))
        return false;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->data[i] != (uint32_t)json_integer_value(json_array_get(wanted, i)))
            return false;
    return true;
}

static bool check_ids(const mt_tokenizer *t, const json_t *line, const char *key, bool special)
{
    const json_t *text = json_object_get(line, "text");
    mt_encode_options options = {.add_special = special};
    mt_ids ids = {0};
    mt_error err;
    bool ok = mt_tokenizer_encode(t, json_string_value(text), json_string_length(text), &options, &ids, &err);

    if (!ok)
        show(json_string_value(json_object_get(line, "tokenizer")), key, text, err.text);
    else if (!same_ids(&ids, get(line, key))) {
        char got[512] = "";
        size_t len = 0;

        for (size_t i = 0; i < ids.count && len < sizeof(got) - 12; i++)
            len += (size_t)snprintf(got + len, sizeof(got) - len, "%u ", ids.data[i]);
        show(json_string_value(json_object_get(line, "tokenizer")), key, text, got);
        ok = false;
    }
    mt_ids_free(&ids);
    return ok;
}

static bool is_utf8(const char *s, size_t len)
{
    for (size_t at = 0, size; at < len; at += size)
        if ((size = mt_utf8_length(s + at, len - at)) == 0)
            return false;
    return true;
}

/* Token by token; what comes out must be whole characters at every step. */
static bool check_text(const mt_tokenizer *t, const json_t *line, const char *ids_key, const char *key, bool skip)
{
    const json_t *ids = get(line, ids_key), *wanted = get(line, key);
    mt_detokenizer d;
    bool ok = true;
    mt_buf out;

    mt_buf_init(&out, MT_LIMIT_ENCODE_BYTES);
    mt_detokenizer_init(&d, t, skip);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        size_t before = out.len;

        ok = mt_detokenizer_add(&d, (uint32_t)json_integer_value(json_array_get(ids, i)), &out) && ok;
        ok = ok && (out.len == before || is_utf8(out.data + before, out.len - before));
    }
    ok = mt_detokenizer_finish(&d, &out) && ok;
    ok = ok && out.len == json_string_length(wanted) &&
         (out.len == 0 || memcmp(out.data, json_string_value(wanted), out.len) == 0);
    if (!ok)
        show(json_string_value(json_object_get(line, "tokenizer")), key, json_object_get(line, "text"),
             out.data ? out.data : "");
    mt_buf_free(&out);
    return ok;
}

static mt_tokenizer *load_gguf(const char *path, mt_error *err)
{
    mt_gguf *g = mt_gguf_open(path, err);
    mt_tokenizer *t = NULL;
    mt_buf json;

    mt_buf_init(&json, MT_LIMIT_TOKENIZER_BYTES);
    if (g && mt_gguf_tokenizer(g, &json, err))
        t = mt_tokenizer_parse(json.data, json.len, err);
    mt_buf_free(&json);
    mt_gguf_close(g);
    return t;
}

static mt_tokenizer *load(const char *folder, const char *name)
{
    char path[MT_LIMIT_PATH];
    mt_tokenizer *t;
    mt_error err;

    snprintf(path, sizeof(path), "%s/%s.gguf", folder, name);
    if (access(path, R_OK) == 0) {
        t = load_gguf(path, &err);
    } else {
        snprintf(path, sizeof(path), "%s/%s.json", folder, name);
        if (access(path, R_OK) != 0)
            snprintf(path, sizeof(path), "%s/%s", folder, name);
        t = mt_tokenizer_load(path, &err);
    }
    if (!t)
        printf("%s\n", err.text);
    return t;
}

/* Adds what a tokenizer makes of the line's text as what is wanted of the other one. */
static void add_answers(const mt_tokenizer *t, json_t *line)
{
    const json_t *text = json_object_get(line, "text");

    for (int special = 0; special < 2; special++) {
        mt_encode_options options = {.add_special = special};
        json_t *list = json_array();
        mt_ids ids = {0};
        mt_error err;
        mt_buf out;

        mt_buf_init(&out, MT_LIMIT_ENCODE_BYTES);
        if (!mt_tokenizer_encode(t, json_string_value(text), json_string_length(text), &options, &ids, &err) ||
            !mt_tokenizer_decode(t, ids.data, ids.count, special, &out))
            printf("%s\n", err.text);
        for (size_t i = 0; i < ids.count; i++)
            json_array_append_new(list, json_integer(ids.data[i]));
        json_object_set_new(line, special ? "ids_special" : "ids", list);
        json_object_set_new(line, special ? "decoded_skip_special" : "decoded",
                            json_stringn(out.data ? out.data : "", out.len));
        mt_ids_free(&ids);
        mt_buf_free(&out);
    }
}

/* A tokenizer that is kept until another one is asked for. */
typedef struct kept {
    char name[256];
    mt_tokenizer *tokenizer;
} kept;

static const mt_tokenizer *get_tokenizer(kept *k, const char *folder, const char *name)
{
    if (name && strcmp(name, k->name) != 0) {
        mt_tokenizer_free(k->tokenizer);
        snprintf(k->name, sizeof(k->name), "%s", name);
        k->tokenizer = load(folder, name);
    }
    return name ? k->tokenizer : NULL;
}

int main(int argc, char **argv)
{
    FILE *file = argc >= 3 ? fopen(argv[1], "r") : NULL;
    size_t passed = 0, failed = 0, cap = 0;
    char *text = NULL;
    kept one = {0}, other = {0};

    if (!file) {
        fprintf(stderr, "usage: text_corpus VECTORS.jsonl FOLDER [NAME]\n");
        return 2;
    }
    while (getline(&text, &cap, file) > 0) {
        json_t *line = json_loads(text, JSON_ALLOW_NUL, NULL);
        const json_t *like = json_object_get(line, "like");
        const mt_tokenizer *t = get_tokenizer(&one, argv[2], json_string_value(json_object_get(line, "tokenizer")));
        const mt_tokenizer *o = get_tokenizer(&other, argv[2], json_string_value(like));
        bool ok = false;

        if (t && (o || !like)) {
            if (o)
                add_answers(o, line);
            ok = true;
            if (json_object_get(line, "text")) {
                ok = check_ids(t, line, "ids", false);
                ok = check_ids(t, line, "ids_special", true) && ok;
            }
            ok = check_text(t, line, "ids", "decoded", false) && ok;
            ok = check_text(t, line, "ids_special", "decoded_skip_special", true) && ok;
        }
        passed += ok;
        failed += !ok;
        json_decref(line);
    }
    free(text);
    fclose(file);
    mt_tokenizer_free(one.tokenizer);
    mt_tokenizer_free(other.tokenizer);
    printf("%s: %zu passed, %zu failed\n", argc > 3 ? argv[3] : "tokenizer corpus", passed, failed);
    return failed || !passed;
}
