/* Finds the pictures and videos in a rendered prompt and replaces their markers by the text that stands for them. A
   template writes a marker for each; the markers of a type belong to the media of that type in their order. Only
   markers that the template wrote count: one in a client's text is text. */
#include <string.h>

#include "chat/prompt.h"
#include "template/limits.h"

typedef struct filler {
    mt_prompt *out;
    const mt_prompt_model *model;
    mt_chat_text *texts; /* what replaces the markers */
    mt_error *err;
} filler;

static bool fail_media(const filler *s, const mt_chat_media *media, const char *why)
{
    mt_fail(s->err, MT_E_INVALID, "%s is %s, but %s; send text only", media->place,
            media->type == MT_CHAT_IMAGE ? "an image" : "a video", why);
    return mt_fail_about(s->err, media->place);
}

/* Whether all bytes of a range are the template's. *range: index of the next untrusted range, for calls in ascending
   order. */
static bool trusted(const filler *s, size_t begin, size_t end, size_t *range)
{
    const mt_prompt *p = s->out;

    if (s->model->allow_special)
        return true;
    while (*range < p->untrusted_count && p->untrusted[*range].end <= begin)
        ++*range;
    return *range == p->untrusted_count || p->untrusted[*range].begin >= end;
}

/* Finds the next marker from *at on and moves *at behind it. False: there is none. */
static bool find_marker(const filler *s, const char *marker, size_t *at, size_t *range)
{
    const mt_buf *text = &s->out->text;
    const size_t len = strlen(marker);
    const char *found;

    while (*at < text->len && (found = memmem(text->data + *at, text->len - *at, marker, len))) {
        const size_t begin = (size_t)(found - text->data);

        *at = begin + len;
        if (trusted(s, begin, begin + len, range))
            return true;
        *at = begin + 1;
    }
    return false;
}

/* Finds the markers of all media of a type. Too few: the template did not show one; too many: a client wrote one where
   special tokens in messages are allowed. */
static bool find_places(const filler *s, mt_chat_part_type type)
{
    const char *marker = s->model->marks.of[type].token, *name = mt_chat_media_name(type);
    size_t at = 0, range = 0;

    for (size_t i = 0; i < s->out->media_count; i++) {
        mt_chat_media *media = &s->out->media[i];

        if (media->type != type)
            continue;
        if (!marker)
            return fail_media(s, media, "this model takes none");
        if (!find_marker(s, marker, &at, &range))
            return fail_media(s, media, "the chat template of this model does not show them there");
        media->marker = (mt_range){.begin = at - strlen(marker), .end = at};
    }
    if (marker && find_marker(s, marker, &at, &range))
        return mt_fail(s->err, MT_E_INVALID, "the prompt has more places for %s than %s; leave \"%s\" out of the text",
                       name, name, marker);
    return true;
}

/* Media of both types must stand in the order of the messages. */
static bool check_order(const filler *s)
{
    for (size_t i = 1; i < s->out->media_count; i++)
        if (s->out->media[i].marker.begin < s->out->media[i - 1].marker.end)
            return fail_media(s, &s->out->media[i], "the chat template of this model shows them in another order");
    return true;
}

/* Maps byte offsets of the rendered text to the text with markers replaced. One mapper maps one ascending list. */
typedef struct mapper {
    const filler *s;
    size_t next;          /* index of the first medium that is not passed yet */
    size_t grown, shrunk; /* bytes added and removed by the media passed */
} mapper;

static size_t map(mapper *m, size_t offset)
{
    const mt_prompt *p = m->s->out;

    for (; m->next < p->media_count && p->media[m->next].marker.end <= offset; m->next++) {
        m->grown += m->s->texts[m->next].len;
        m->shrunk += p->media[m->next].marker.end - p->media[m->next].marker.begin;
    }
    return offset + m->grown - m->shrunk;
}

static void map_offsets(const filler *s)
{
    mt_prompt *p = s->out;
    mapper cuts = {.s = s}, ranges = {.s = s}, generation = {.s = s};

    for (size_t i = 0; i < p->text_cut_count; i++)
        p->text_cuts[i] = map(&cuts, p->text_cuts[i]);
    for (size_t i = 0; i < p->untrusted_count; i++) {
        p->untrusted[i].begin = map(&ranges, p->untrusted[i].begin);
        p->untrusted[i].end = map(&ranges, p->untrusted[i].end);
    }
    p->generation = map(&generation, p->generation);
}

static bool replace(const filler *s)
{
    mt_prompt *p = s->out;
    size_t at = 0;
    mt_buf text = {.limit = MT_LIMIT_TEMPLATE_OUTPUT};

    for (size_t i = 0; i < p->media_count; i++) {
        const mt_range *marker = &p->media[i].marker;

        mt_buf_add(&text, p->text.data + at, marker->begin - at);
        mt_buf_add(&text, s->texts[i].data, s->texts[i].len);
        at = marker->end;
    }
    mt_buf_add(&text, p->text.data + at, p->text.len - at);
    if (text.full) {
        mt_buf_free(&text);
        return mt_fail(s->err, MT_E_TOO_LARGE, "the prompt is longer than %u bytes; send fewer pictures",
                       MT_LIMIT_TEMPLATE_OUTPUT);
    }
    map_offsets(s);
    mt_buf_free(&p->text);
    p->text = text;
    return true;
}

bool mt_prompt_fill_media(mt_prompt *out, const mt_chat *chat, const mt_prompt_model *model, mt_error *err)
{
    filler s = {.out = out, .model = model, .err = err};

    if (!find_places(&s, MT_CHAT_IMAGE) || !find_places(&s, MT_CHAT_VIDEO) || !check_order(&s))
        return false;
    if (out->media_count == 0 || !model->describe)
        return true;
    s.texts = mt_arena_alloc(chat->arena, out->media_count * sizeof(*s.texts));
    if (!s.texts)
        return mt_fail(err, MT_E_TOO_LARGE, "the messages need more memory than a request may have; send fewer images");
    return model->describe(model->describe_ctx, out->media, out->media_count, s.texts, err) && replace(&s);
}
