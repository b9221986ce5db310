#include "server/keys.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "http/http.h"

static bool add(mt_keys *keys, const char *text, size_t len, mt_error *err)
{
    char *key;

    if (keys->count == MT_LIMIT_API_KEYS)
        return mt_fail(err, MT_E_INVALID, "there are more than %d API keys; give fewer", MT_LIMIT_API_KEYS);
    key = mt_alloc(len + 1);
    memcpy(key, text, len);
    keys->at[keys->count++] = key;
    return true;
}

static bool add_file(mt_keys *keys, const char *path, mt_error *err)
{
    const size_t before = keys->count;
    mt_buf text;
    bool ok;

    mt_buf_init(&text, MT_LIMIT_CONFIG_BYTES);
    ok = mt_file_read(&text, path, err);
    for (size_t at = 0; ok && at < text.len;) {
        const char *line = text.data + at;
        size_t len = strcspn(line, "\r\n");

        at += len + 1;
        if (len > 0 && *line != '#')
            ok = add(keys, line, len, err);
    }
    mt_buf_free(&text);
    return ok &&
           (keys->count > before || mt_fail(err, MT_E_INVALID, "\"%s\" has no API key in it; put one a line", path));
}

bool mt_keys_read(mt_keys *keys, const mt_option_list *list, mt_error *err)
{
    *keys = (mt_keys){.at = mt_alloc_array(MT_LIMIT_API_KEYS, sizeof(*keys->at))};
    for (size_t i = 0; i < list->count; i++) {
        const char *item = list->at[i];

        if (*item == '\0')
            return mt_fail(err, MT_E_INVALID, "an API key is empty; leave the option out to need none");
        if (*item == '@' ? !add_file(keys, item + 1, err) : !add(keys, item, strlen(item), err))
            return false;
    }
    return true;
}

void mt_keys_free(mt_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        mt_free(keys->at[i]);
    mt_free(keys->at);
    *keys = (mt_keys){0};
}

bool mt_keys_admit(const mt_keys *keys, const char *key)
{
    bool found = keys->count == 0;

    for (size_t i = 0; key && i < keys->count; i++)
        found |= mt_http_secret_equal(key, keys->at[i]);
    return found;
}
