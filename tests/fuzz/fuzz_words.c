/* One line that somebody wrote, of a kind that the first byte picks: a model's name, a time, a list of proxies with a
   forwarded header behind it, the URL of a picture, base64, what a known pattern of tokenizers is to cut. */
#include <string.h>

#include "../text/patterns.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/duration.h"
#include "base/limits.h"
#include "http/head.h"
#include "http/proxies.h"
#include "hub/limits.h"
#include "hub/names.h"
#include "media/source.h"
#include "scratch.h"
#include "text/chars.h"
#include "text/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void name(const char *text)
{
    mt_hub_name n;
    char folder[MT_LIMIT_PATH], id[MT_LIMIT_HUB_NAME];

    if (!mt_hub_name_read(&n, text))
        return;
    assert(!strstr(n.id, "..") || n.id[0] != '.');
    assert(n.owned == (strchr(n.id, '/') != NULL));
    if (mt_hub_folder(folder, "/c", n.id) && strrchr(folder, '/') && mt_hub_folder_id(id, strrchr(folder, '/') + 1))
        assert(n.owned ? strlen(id) > 0 : true);
}

static void proxies(char *text)
{
    mt_http_proxies list = {0};
    mt_error err = {0};
    char *second = strchr(text, '\n'), client[MT_HTTP_CLIENT_SIZE];
    mt_http_header headers[2] = {{.name = "x-forwarded-for", .value = ""}, {.name = "forwarded", .value = ""}};

    if (second) {
        char *third = strchr(second + 1, '\n');

        *second++ = '\0';
        headers[0].value = second;
        if (third) {
            *third++ = '\0';
            headers[1].value = third;
        }
    }
    if (!mt_http_proxies_add(&list, text, &err))
        assert(err.code != MT_OK && strlen(err.text) > 0);
    list.unix_socket = true;
    mt_http_client(&list, "unix", headers, 2, client);
    assert(strlen(client) > 0 && strlen(client) < sizeof(client));
}

static void url(const char *text, size_t len)
{
    const mt_media_limits limits = {.bytes = 4096, .pixels = 1, .root = scratch_path("")};
    mt_error err = {0};
    mt_buf bytes;

    if (len >= 4 && strncmp(text, "http", 4) == 0)
        return; /* no network here */
    if (mt_media_load(&bytes, text, len, &limits, NULL, &err))
        assert(bytes.len <= limits.bytes);
    else
        assert(err.code != MT_OK && strlen(err.text) > 0);
    mt_buf_free(&bytes);
}

static void base64(const char *text, size_t len)
{
    mt_error err = {0};
    mt_buf out;

    mt_buf_init(&out, 1000);
    if (mt_base64_decode(&out, text, len, &err))
        assert(out.len <= len);
    else
        assert(err.code != MT_OK && strlen(err.text) > 0);
    mt_buf_free(&out);
}

/* With the pattern as it is, or in brackets, in which PCRE2 alone matches it. */
static mt_tok_regex *pattern_of(size_t which, bool bracketed)
{
    static mt_tok_regex *made[MT_COUNT(known_patterns)][2];
    mt_error err;
    mt_buf pattern;

    if (!made[which][bracketed]) {
        mt_buf_init(&pattern, 4096);
        mt_buf_printf(&pattern, bracketed ? "(?:%s)" : "%s", known_patterns[which]);
        made[which][bracketed] = mt_tok_regex_new(pattern.data, pattern.len, &err);
        mt_buf_free(&pattern);
    }
    assert(made[which][bracketed]);
    return made[which][bracketed];
}

static void cut(const char *text, size_t len)
{
    mt_tok_matcher *matcher = mt_tok_matcher_new(NULL);
    mt_error err;

    for (size_t i = 0; i < MT_COUNT(known_patterns) && mt_tok_valid(text, len) == len; i++) {
        mt_tok_finder a = {.regex = pattern_of(i, false), .matcher = matcher, .text = text, .len = len};
        mt_tok_finder b = {.regex = pattern_of(i, true), .matcher = matcher, .text = text, .len = len};
        mt_range one = {0}, other = {0};
        bool more;

        do {
            more = mt_tok_finder_next(&a, &one, &err);
            assert(more == mt_tok_finder_next(&b, &other, &err));
            assert(one.begin == other.begin && one.end == other.end);
        } while (more);
    }
    mt_tok_matcher_free(matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double seconds = 0;
    char *text;

    if (size == 0 || size > 8192)
        return 0;
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 6) {
    case 0: name(text); break;
    case 1:
        if (mt_duration_parse(text, &seconds))
            assert(seconds >= 0 || seconds < 0); /* a number */
        break;
    case 2: proxies(text); break;
    case 3: url(text, size - 1); break;
    case 4: base64(text, size - 1); break;
    default: cut(text, size - 1);
    }
    free(text);
    return 0;
}
