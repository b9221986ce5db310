/* See normalise.h. */
#include "chat/normalise.h"

#include "chat/limits.h"

#include <stdint.h>
#include <string.h>

static void *allocate(mt_chat *chat, size_t size, mt_error *err)
{
    void *memory = mt_arena_alloc(chat->arena, size);

    if (!memory)
        mt_fail(err, MT_E_TOO_LARGE,
                "the messages need more memory than a request may have; send fewer or shorter ones");
    return memory;
}

/* Texts that are joined with a blank line between them; empty ones are left out. All are copied once, so that merging
   is linear. */
typedef struct joiner {
    mt_chat_text *texts;
    size_t count;
} joiner;

static void add_text(joiner *j, mt_chat_text text)
{
    if (text.len > 0)
        j->texts[j->count++] = text;
}

static bool join(mt_chat *chat, joiner *j, mt_chat_text *out, mt_error *err)
{
    size_t len = 0, at = 0;
    char *joined;

    for (size_t i = 0; i < j->count; i++)
        len += j->texts[i].len + (i ? 2 : 0);
    *out = j->count ? j->texts[0] : (mt_chat_text){.data = "", .len = 0};
    if (j->count < 2)
        return true;
    joined = allocate(chat, len, err);
    if (!joined)
        return false;
    for (size_t i = 0; i < j->count; i++) {
        if (i > 0) {
            memcpy(joined + at, "\n\n", 2);
            at += 2;
        }
        memcpy(joined + at, j->texts[i].data, j->texts[i].len);
        at += j->texts[i].len;
    }
    *out = (mt_chat_text){.data = joined, .len = len};
    j->count = 0;
    return true;
}

/* Joins the texts that were collected for the last text part. */
static bool end_text(mt_chat *chat, joiner *j, mt_chat_part *parts, size_t count, mt_error *err)
{
    if (j->count < 2) {
        j->count = 0;
        return true;
    }
    return join(chat, j, &parts[count - 1].text, err);
}

/* Concatenates the parts of all messages of a run. Where a text part meets one of the next message, the two become
   one. */
static bool merge_parts(mt_chat *chat, mt_chat_message *run, size_t count, mt_error *err)
{
    size_t total = 0, n = 0;
    mt_chat_part *parts;
    joiner j = {0};

    for (size_t i = 0; i < count; i++)
        total += run[i].part_count;
    parts = allocate(chat, (total + 1) * sizeof(*parts), err);
    j.texts = allocate(chat, (total + 1) * sizeof(*j.texts), err);
    if (!parts || !j.texts)
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < run[i].part_count; k++) {
            const mt_chat_part *part = &run[i].parts[k];
            bool text = part->type == MT_CHAT_TEXT;

            if (k == 0 && n > 0 && text && parts[n - 1].type == MT_CHAT_TEXT) {
                add_text(&j, part->text);
                if (parts[n - 1].text.len == 0)
                    parts[n - 1].text = part->text;
                continue;
            }
            if (!end_text(chat, &j, parts, n, err))
                return false;
            parts[n++] = *part;
            if (text)
                add_text(&j, part->text);
        }
    if (!end_text(chat, &j, parts, n, err))
        return false;
    run[0].parts = parts;
    run[0].part_count = n;
    return true;
}

static bool merge_reasoning(mt_chat *chat, mt_chat_message *run, size_t count, mt_error *err)
{
    joiner j = {.texts = allocate(chat, count * sizeof(*j.texts), err)};

    if (!j.texts)
        return false;
    for (size_t i = 0; i < count; i++)
        add_text(&j, run[i].reasoning);
    return join(chat, &j, &run[0].reasoning, err);
}

/* Merges all messages of a run into its first. */
static bool merge_run(mt_chat *chat, mt_chat_message *run, size_t count, mt_error *err)
{
    if (!merge_parts(chat, run, count, err) || !merge_reasoning(chat, run, count, err))
        return false;
    for (size_t i = 1; i < count; i++) {
        run[0].list = run[0].list || run[i].list;
        if (!mt_chat_text_equal(run[0].name, run[i].name))
            run[0].name.data = NULL;
    }
    return true;
}

static bool can_merge(const mt_chat_message *a, const mt_chat_message *b)
{
    return a->role == b->role && a->role != MT_CHAT_TOOL && a->call_count == 0 && b->call_count == 0;
}

static bool merge_neighbours(mt_chat *chat, mt_error *err)
{
    size_t kept = 0;

    for (size_t i = 0, end; i < chat->count; i = end) {
        for (end = i + 1; end < chat->count && can_merge(&chat->messages[i], &chat->messages[end]);)
            end++;
        if (end - i > 1 && !merge_run(chat, &chat->messages[i], end - i, err))
            return false;
        chat->messages[kept++] = chat->messages[i];
    }
    chat->count = kept;
    return true;
}

/* Moves all system messages to the front, in their order. as: the role they get: the user's, where the template has no
   system messages. */
static bool hoist_systems(mt_chat *chat, mt_chat_role as, mt_error *err)
{
    mt_chat_message *sorted = allocate(chat, chat->count * sizeof(*sorted), err);
    size_t count = 0;

    if (!sorted)
        return false;
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].role == MT_CHAT_SYSTEM) {
            sorted[count] = chat->messages[i];
            sorted[count++].role = as;
        }
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].role != MT_CHAT_SYSTEM)
            sorted[count++] = chat->messages[i];
    chat->messages = sorted;
    return true;
}

/* The index of the call that a result answers; call_count: none. */
static size_t call_of(const mt_chat_message *assistant, const mt_chat_message *result)
{
    size_t i = 0;

    while (i < assistant->call_count && !mt_chat_text_equal(assistant->calls[i].id, result->call_id))
        i++;
    return i;
}

/* Sorts results in the order of their calls; those that answer none come last. */
static bool sort_results(mt_chat *chat, const mt_chat_message *assistant, mt_chat_message *results, size_t count,
                         mt_error *err)
{
    size_t *ranks = allocate(chat, (count + 1) * sizeof(*ranks), err);

    if (!ranks)
        return false;
    for (size_t i = 0; i < count; i++) { /* insertion sort: they are few and mostly in order */
        mt_chat_message moved = results[i];
        size_t rank = call_of(assistant, &moved), to = i;

        if (!moved.name.data && rank < assistant->call_count)
            moved.name = assistant->calls[rank].name; /* some templates use it */
        for (; to > 0 && ranks[to - 1] > rank; to--) {
            results[to] = results[to - 1];
            ranks[to] = ranks[to - 1];
        }
        results[to] = moved;
        ranks[to] = rank;
    }
    return true;
}

static bool order_results(mt_chat *chat, mt_error *err)
{
    for (size_t i = 0, end; i < chat->count; i = end) {
        for (end = i + 1; end < chat->count && chat->messages[end].role == MT_CHAT_TOOL;)
            end++;
        if (chat->messages[i].call_count == 0 || chat->messages[i].call_count > MT_LIMIT_TOOL_RESULTS ||
            end - i - 1 > MT_LIMIT_TOOL_RESULTS)
            continue;
        if (!sort_results(chat, &chat->messages[i], &chat->messages[i + 1], end - i - 1, err))
            return false;
    }
    return true;
}

/* Where a message with calls has both reasoning and text, and the template shows only one of them, both become
   reasoning. */
static bool join_thoughts(mt_chat *chat, mt_chat_message *m, mt_error *err)
{
    joiner j = {.texts = allocate(chat, (m->part_count + 1) * sizeof(*j.texts), err)};
    size_t kept = 0;

    if (!j.texts)
        return false;
    add_text(&j, m->reasoning);
    for (size_t i = 0; i < m->part_count; i++)
        if (m->parts[i].type == MT_CHAT_TEXT)
            add_text(&j, m->parts[i].text);
        else
            m->parts[kept++] = m->parts[i];
    m->part_count = kept;
    return join(chat, &j, &m->reasoning, err);
}

static bool join_all_thoughts(mt_chat *chat, mt_error *err)
{
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].call_count && chat->messages[i].reasoning.len &&
            !join_thoughts(chat, &chat->messages[i], err))
            return false;
    return true;
}

bool mt_chat_normalise(mt_chat *chat, const mt_chat_profile *profile, mt_error *err)
{
    const mt_chat_role system = profile->no_system ? MT_CHAT_USER : MT_CHAT_SYSTEM;

    if (!profile->system_in_place && !hoist_systems(chat, system, err))
        return false;
    if (profile->reasoning_or_content && !join_all_thoughts(chat, err))
        return false;
    return merge_neighbours(chat, err) && order_results(chat, err);
}
