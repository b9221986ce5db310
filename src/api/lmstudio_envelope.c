/* See lmstudio_envelope.h. */
#include "api/lmstudio_envelope.h"

#include <stdio.h>
#include <string.h>

#include "base/json_reader.h"

static void copy_word(mt_json_reader *r, char *out, size_t size)
{
    if (mt_json_next(r) == MT_JSON_STRING)
        snprintf(out, size, "%.*s", (int)(r->len < size ? r->len : 0), r->str);
}

/* Reads "type" of an object. False: the reader is not behind a complete value. */
static bool read_inside(mt_json_reader *r, char out[MT_LMSTUDIO_WORD])
{
    mt_json_event event = mt_json_next(r);

    if (event != MT_JSON_OBJECT_BEGIN)
        return event == MT_JSON_STRING || event == MT_JSON_NULL;
    while ((event = mt_json_next(r)) == MT_JSON_KEY)
        if (r->len == 4 && memcmp(r->str, "type", 4) == 0)
            copy_word(r, out, MT_LMSTUDIO_WORD);
        else if (!mt_json_skip(r))
            return false;
    return event == MT_JSON_OBJECT_END;
}

static bool is_key(const mt_json_reader *r, const char *key)
{
    return r->len == strlen(key) && memcmp(r->str, key, r->len) == 0;
}

/* Reads the value of a key that was read. False: no more can be read. */
static bool read_member(mt_json_reader *r, mt_lmstudio_envelope *e)
{
    if (is_key(r, "type"))
        copy_word(r, e->type, sizeof(e->type));
    else if (is_key(r, "endpoint"))
        copy_word(r, e->endpoint, sizeof(e->endpoint));
    else if (is_key(r, "clientPasskey"))
        copy_word(r, e->passkey, sizeof(e->passkey));
    else if (is_key(r, "clientIdentifier"))
        copy_word(r, e->client, sizeof(e->client));
    else if (is_key(r, "callId") || is_key(r, "channelId") || is_key(r, "subscribeId")) {
        if (mt_json_next(r) == MT_JSON_NUMBER && r->is_int && r->integer >= 0)
            e->number = r->integer;
    } else if (is_key(r, "message"))
        return read_inside(r, e->said);
    else {
        e->greets = e->greets || is_key(r, "authVersion");
        return mt_json_skip(r);
    }
    return true;
}

mt_lmstudio_envelope mt_lmstudio_envelope_read(const char *message, size_t len)
{
    mt_lmstudio_envelope e = {.number = -1};
    mt_json_reader r;

    mt_json_reader_init(&r, message, len);
    if (mt_json_next(&r) == MT_JSON_OBJECT_BEGIN)
        while (mt_json_next(&r) == MT_JSON_KEY && read_member(&r, &e)) {}
    mt_json_reader_free(&r);
    return e;
}
