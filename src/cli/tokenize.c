/* The commands motet tokenize and motet detokenize: run only the tokenizer, from standard input to standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "text/limits.h"
#include "text/tokenizer.h"
#include "weights/limits.h"

static bool read_input(mt_buf *input, mt_error *err)
{
    char chunk[1 << 16];
    size_t len;

    while ((len = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        if (!mt_buf_add(input, chunk, len))
            return mt_fail(err, MT_E_TOO_LARGE, "standard input has more than %u bytes: give it in parts",
                           MT_LIMIT_ENCODE_BYTES);
    return !ferror(stdin) || mt_fail(err, MT_E_IO, "standard input cannot be read: %s", strerror(errno));
}

/* Prints the text of a token in quotes; bytes that are not printable or no complete character as \xNN. */
static void print_quoted(const char *s, size_t len)
{
    putchar('"');
    for (size_t at = 0, size; at < len; at += size) {
        unsigned char c = (unsigned char)s[at];

        size = mt_utf8_length(s + at, len - at);
        if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (size == 0 || c < 0x20 || c == 0x7F)
            printf("\\x%02X", c);
        else
            fwrite(s + at, 1, size, stdout);
        size = size ? size : 1;
    }
    putchar('"');
}

static void print_tokens(const mt_tokenizer *t, const mt_ids *ids)
{
    mt_buf text;

    mt_buf_init(&text, 16 * (size_t)MT_LIMIT_TOKEN_BYTES);
    for (size_t i = 0; i < ids->count; i++) {
        text.len = 0;
        printf("%7u ", ids->data[i]);
        if (mt_tokenizer_bytes(t, ids->data[i], &text) && text.len > 0)
            print_quoted(text.data, text.len);
        else
            printf("\"\"");
        puts(mt_tokenizer_special(t, ids->data[i]) ? " special" : "");
    }
    mt_buf_free(&text);
}

static void print_ids(const mt_ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        printf("%s%u", i ? " " : "", ids->data[i]);
    putchar('\n');
}

static bool tokenize(const mt_options *opt, const mt_tokenizer *t, const mt_buf *input, mt_error *err)
{
    mt_encode_options options = {.add_special = opt->special};
    mt_ids ids = {0};
    bool ok = mt_tokenizer_encode(t, input->len ? input->data : "", input->len, &options, &ids, err);

    if (ok && opt->ids)
        print_ids(&ids);
    else if (ok)
        print_tokens(t, &ids);
    mt_ids_free(&ids);
    return ok;
}

/* Parses numbers that are separated by blanks or commas. */
static bool parse_ids(const mt_buf *input, mt_ids *ids, mt_error *err)
{
    const char *p = input->len ? input->data : "";

    for (p += strspn(p, " ,\t\r\n"); *p; p += strspn(p, " ,\t\r\n")) {
        char *end;
        unsigned long id;

        errno = 0;
        id = strtoul(p, &end, 10);
        if (*p < '0' || *p > '9' || (*end && !strchr(" ,\t\r\n", *end)))
            return mt_fail(err, MT_E_INVALID, "\"%.*s\" is not a token id: give numbers with blanks between them",
                           (int)strcspn(p, " ,\t\r\n"), p);
        if (errno || id >= MT_LIMIT_VOCAB)
            return mt_fail(err, MT_E_INVALID, "%.*s is beyond every vocabulary: give token ids of this model",
                           (int)strcspn(p, " ,\t\r\n"), p);
        mt_ids_add(ids, (uint32_t)id);
        p = end;
    }
    return true;
}

/* Whether the tokenizer has a token for each id. */
static bool check_ids(const mt_tokenizer *t, const mt_ids *ids, mt_error *err)
{
    size_t len;

    for (size_t i = 0; i < ids->count; i++)
        if (!mt_tokenizer_token(t, ids->data[i], &len))
            return mt_fail(err, MT_E_INVALID, "%u is the id of no token: this tokenizer has ids from 0 to %zu%s",
                           ids->data[i], mt_tokenizer_size(t) - 1,
                           ids->data[i] < mt_tokenizer_size(t) ? ", of which some are unused" : "");
    return true;
}

static bool detokenize(const mt_options *opt, const mt_tokenizer *t, const mt_buf *input, mt_error *err)
{
    mt_ids ids = {0};
    mt_buf text;
    bool ok;

    mt_buf_init(&text, MT_LIMIT_TOKENIZER_TEXT);
    ok = parse_ids(input, &ids, err) && check_ids(t, &ids, err);
    if (ok && !mt_tokenizer_decode(t, ids.data, ids.count, opt->skip_special, &text))
        ok = mt_fail(err, MT_E_TOO_LARGE, "the text is longer than %u bytes: give the ids in parts",
                     MT_LIMIT_TOKENIZER_TEXT);
    if (ok && text.len > 0)
        fwrite(text.data, 1, text.len, stdout);
    mt_buf_free(&text);
    mt_ids_free(&ids);
    return ok;
}

static int run(const mt_options *opt,
               bool (*command)(const mt_options *, const mt_tokenizer *, const mt_buf *, mt_error *))
{
    mt_error err = {0};
    mt_tokenizer *t = mt_tokenizer_load(opt->dir, &err);
    mt_buf input;
    bool ok;

    mt_buf_init(&input, MT_LIMIT_ENCODE_BYTES);
    ok = t && read_input(&input, &err) && command(opt, t, &input, &err);
    mt_buf_free(&input);
    mt_tokenizer_free(t);
    if (!ok)
        fprintf(stderr, "motet: %s\n", err.text);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int mt_cmd_tokenize(const mt_options *opt)
{
    return run(opt, tokenize);
}

int mt_cmd_detokenize(const mt_options *opt)
{
    return run(opt, detokenize);
}
