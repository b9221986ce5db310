/* Renders a chat and finds where turns begin. A template writes messages in a loop, and the template engine tells what
   each round of a loop wrote; so a turn begins where the round of its message begins. That costs nothing and needs no
   knowledge of markers. Rounds that write nothing do not count, since templates may loop over the messages before they
   write them.

   The generation prompt begins at the end of the last round, where a probe has shown that the template works so; else
   where the text differs from the text without the generation prompt.

   A template that writes messages without a loop of its own, for example in a macro, has no rounds. Then the first n
   messages are rendered alone, for some n: where that text is a beginning of the whole text, a turn begins at its end.
   The largest n are tried, at most MT_LIMIT_CUT_PROBES of them, since reuse begins at the latest turn that is still the
   same. */
#include "chat/prompt.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "chat/ending.h"
#include "chat/limits.h"
#include "chat/normalise.h"

/* A prompt in the making. */
typedef struct maker {
    const mt_chat_template *tpl;
    mt_chat_context context;
    mt_template_options options;
    mt_prompt *out;
} maker;

static bool render(const maker *m, mt_rendering *r, mt_error *err)
{
    if (mt_template_render(m->tpl->tpl, mt_chat_context_fill, &m->context, &m->options, r, err))
        return true;
    mt_fail_within(err, r->raised ? "the chat template refuses these messages"
                                  : "the chat template cannot render these messages");
    return false;
}

static void add_cut(mt_prompt *out, size_t at)
{
    if (at > 0 && at < out->text.len)
        out->text_cuts[out->text_cut_count++] = at;
}

static int by_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

static void sort_cuts(mt_prompt *out)
{
    size_t kept = 0;

    qsort(out->text_cuts, out->text_cut_count, sizeof(*out->text_cuts), by_size);
    for (size_t i = 0; i < out->text_cut_count; i++)
        if (kept == 0 || out->text_cuts[kept - 1] != out->text_cuts[i])
            out->text_cuts[kept++] = out->text_cuts[i];
    out->text_cut_count = kept;
}

/* Renders the first `shown` messages without a generation prompt. Returns how many bytes this text and m->out->text
   have in common from their beginning; 0 when rendering fails. *whole: all of this text is a beginning of m->out->text.
   */
static size_t common_with(const maker *m, size_t shown, bool *whole)
{
    maker other = *m;
    mt_rendering r;
    mt_error err;
    size_t same = 0;

    other.context.shown = shown;
    other.context.generation_prompt = false;
    *whole = false;
    if (render(&other, &r, &err)) {
        while (same < r.text.len && same < m->out->text.len && r.text.data[same] == m->out->text.data[same])
            same++;
        *whole = same == r.text.len;
    }
    mt_rendering_free(&r);
    return same;
}

static void cut_by_comparing(const maker *m)
{
    for (size_t n = m->context.shown, probes = 0; n-- > 1 && probes < MT_LIMIT_CUT_PROBES; probes++) {
        bool whole;
        const size_t same = common_with(m, n, &whole);

        if (whole)
            add_cut(m->out, same);
    }
}

/* Adds cuts where rounds of loops began. Returns the end of the last one; 0: there are none. */
static size_t cut_by_rounds(const maker *m, const mt_rendering *r)
{
    size_t end = 0;

    for (size_t i = 0; i < r->mark_count; i++) {
        if (r->marks[i].bytes.end == r->marks[i].bytes.begin)
            continue;
        add_cut(m->out, r->marks[i].bytes.begin);
        end = r->marks[i].bytes.end > end ? r->marks[i].bytes.end : end;
    }
    return end;
}

static void find_cuts(const maker *m, const mt_rendering *r, bool generation_prompt)
{
    size_t end;
    bool whole;

    m->out->text_cuts = mt_alloc_array(r->mark_count + MT_LIMIT_CUT_PROBES + 1, sizeof(*m->out->text_cuts));
    end = cut_by_rounds(m, r);
    if (end == 0)
        cut_by_comparing(m);
    m->out->generation = m->out->text.len;
    if (generation_prompt && !m->tpl->profile.generation_none) {
        m->out->generation =
            end > 0 && m->tpl->profile.generation_after ? end : common_with(m, m->context.shown, &whole);
        add_cut(m->out, m->out->generation);
    }
    sort_cuts(m->out);
}

/* Finds what the generation prompt has begun, such as a block of reasoning. Where there is no generation prompt, looks
   at the last turn. */
static void find_opened(mt_prompt *out)
{
    size_t begin = out->generation;

    if (begin == out->text.len && out->text_cut_count)
        begin = out->text_cuts[out->text_cut_count - 1];
    out->opened = mt_chat_opened_find(out->text.data, out->text.len, begin, out->untrusted, out->untrusted_count);
}

static bool make(maker *m, mt_chat *chat, mt_error *err)
{
    mt_rendering r;
    bool ok = render(m, &r, err) && (!chat->continues || mt_chat_ending_cut(&r, err));

    if (ok) {
        m->out->text = r.text;
        m->out->untrusted = r.untrusted;
        m->out->untrusted_count = r.untrusted_count;
        find_cuts(m, &r, !chat->no_generation_prompt);
        find_opened(m->out);
        r.text = (mt_buf){0};
        r.untrusted = NULL;
    }
    mt_rendering_free(&r);
    return ok;
}

bool mt_prompt_render(mt_prompt *out, mt_chat *chat, const mt_prompt_model *model, mt_error *err)
{
    const mt_chat_template *tpl = mt_chat_templates_pick(model->templates, chat->tools != NULL);
    maker m = {.tpl = tpl,
               .out = out,
               .context = {.chat = chat, .profile = &tpl->profile, .marks = &model->marks, .tokens = tpl->tokens},
               .options = {.now = model->now, .watch = "messages", .stop = model->stop, .memory = model->memory}};

    *out = (mt_prompt){.cut_count = 0};
    if (!mt_chat_normalise(chat, &tpl->profile, err) || (chat->continues && !mt_chat_ending_mark(chat, err)))
        return false;
    m.context.generation_prompt = !chat->no_generation_prompt;
    m.context.shown = mt_chat_context_count(&m.context);
    return mt_chat_context_media(&m.context, &out->media, &out->media_count, err) && make(&m, chat, err);
}

void mt_prompt_free(mt_prompt *prompt)
{
    mt_ids_free(&prompt->ids);
    mt_buf_free(&prompt->text);
    mt_free(prompt->untrusted);
    mt_free(prompt->cuts);
    mt_free(prompt->text_cuts);
    *prompt = (mt_prompt){.cut_count = 0};
}
