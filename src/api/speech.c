/* See speech.h. */
#include "api/speech.h"

#include "api/limits.h"
#include "api/random.h"
#include "base/alloc.h"
#include "base/json_reader.h"
#include "base/json_write.h"

void mt_speech_free(mt_speech *s)
{
    for (size_t i = 0; i < s->count; i++) {
        mt_free(s->at[i].id);
        mt_free(s->at[i].name);
        mt_buf_free(&s->at[i].text);
    }
    mt_free(s->at);
    *s = (mt_speech){0};
}

void mt_speech_end(mt_speech *s)
{
    if (s->count)
        s->at[s->count - 1].ended = true;
}

/* A new part at the end. */
static mt_speech_part *begin(mt_speech *s, mt_speech_kind kind)
{
    mt_speech_end(s);
    s->at = mt_grow(s->at, &s->cap, s->count + 1, sizeof(*s->at));
    s->at[s->count] = (mt_speech_part){.kind = kind};
    mt_buf_init(&s->at[s->count].text, MT_LIMIT_ANSWER_BYTES);
    s->calls += kind == MT_SPEECH_CALL;
    return &s->at[s->count++];
}

/* A part that does not fit is dropped whole, and s->full is set. */
static void append(mt_speech *s, mt_speech_part *part, const char *text, size_t len)
{
    if (len > MT_LIMIT_ANSWER_BYTES - s->bytes || !mt_buf_add(&part->text, text, len))
        s->full = true;
    else
        s->bytes += len;
}

void mt_speech_add(mt_speech *s, mt_speech_kind kind, const char *text, size_t len)
{
    mt_speech_part *last = s->count ? &s->at[s->count - 1] : NULL;

    if (len > 0)
        append(s, last && last->kind == kind ? last : begin(s, kind), text, len);
}

static void begin_call(mt_speech *s, const mt_parse_event *event)
{
    mt_speech_part *call = begin(s, MT_SPEECH_CALL);
    char id[MT_RANDOM_ID];

    mt_random_id(id, "call_");
    call->id = mt_strdup(event->id ? event->id : id);
    call->name = mt_strdup(event->name);
}

/* A model may leave out the marker that ends a call, which is then not complete as the parser sees it: the call is cut
   only where its arguments are. */
static void end_call(mt_speech *s, const mt_parse_event *event)
{
    mt_speech_part *call = &s->at[s->count - 1];

    call->cut = !event->complete && !mt_json_is_object(call->text.data, call->text.len);
    mt_speech_end(s);
}

bool mt_speech_callable(const mt_speech *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].cut)
            return false;
    return s->calls > 0;
}

/* Calls do not overlap, so events about a call are about the last part. */
void mt_speech_hear(void *speech, const mt_parse_event *event)
{
    mt_speech *s = speech;

    switch (event->kind) {
    case MT_PARSE_REASONING: mt_speech_add(s, MT_SPEECH_REASONING, event->text, event->len); break;
    case MT_PARSE_CONTENT: mt_speech_add(s, MT_SPEECH_TEXT, event->text, event->len); break;
    case MT_PARSE_CALL_BEGIN: begin_call(s, event); break;
    case MT_PARSE_CALL_ARGUMENTS: append(s, &s->at[s->count - 1], event->text, event->len); break;
    case MT_PARSE_CALL_END: end_call(s, event); break;
    }
}

static bool is_news(const mt_speech_part *part)
{
    return !part->told || part->written < part->text.len;
}

bool mt_speech_news(const mt_speech *s)
{
    for (size_t i = s->count; i-- > 0;)
        if (is_news(&s->at[i]))
            return true;
    return false;
}

bool mt_speech_has(const mt_speech *s, mt_speech_kind kind, bool news)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].kind == kind && (!news || is_news(&s->at[i])))
            return true;
    return false;
}

void mt_speech_written(mt_speech *s)
{
    for (size_t i = 0; i < s->count; i++) {
        s->at[i].told = true;
        s->at[i].closed = s->at[i].ended;
        s->at[i].written = s->at[i].text.len;
    }
}

void mt_speech_write(mt_buf *out, const char *key, const mt_speech *s, mt_speech_kind kind, bool news)
{
    mt_buf joined = {.limit = MT_LIMIT_ANSWER_BYTES};

    for (size_t i = 0; i < s->count; i++) {
        const mt_speech_part *part = &s->at[i];
        const size_t from = news ? part->written : 0;

        if (part->kind == kind && part->text.len > from)
            mt_buf_add(&joined, part->text.data + from, part->text.len - from);
    }
    mt_json_text(out, key, joined.data, joined.len);
    mt_buf_free(&joined);
}
