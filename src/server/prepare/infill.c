/* See infill.h. The order is the one that all these models were trained with: before the gap, behind it, the gap. Texts
   of other files come first, by the tokens of a whole repository where the model has them. */
#include "server/prepare/infill.h"

#include <string.h>

#include "base/compiler.h"
#include "sample/limits.h"
#include "text/tokenizer.h"

/* Special tokens before the prefix, the suffix and the answer; before a repository's name, and before a file. */
enum { PREFIX, SUFFIX, MIDDLE, REPO, FILE_NAME, END, END_TOO, MARKS };

/* A row for each kind of model. The last two end an answer, where the model's own ends do not. NULL: it has none. */
static const char *const spellings[][MARKS] = {
    /* Qwen's coders */
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>", "<|fim_pad|>",
     "<|endoftext|>"},
    /* CodeGemma */
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", NULL, "<|file_separator|>", NULL, NULL},
    /* StarCoder 2, Granite */
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>", "<fim_pad>", "<|endoftext|>"},
    /* StarCoder */
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<filename>", "<fim_pad>", "<|endoftext|>"},
    /* CodeLlama */
    {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>", NULL, NULL, "\u2581<EOT>", NULL},
    /* DeepSeek's coders */
    {"<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>", NULL, NULL, NULL,
     NULL},
};

typedef struct marks {
    uint32_t ids[MARKS]; /* MT_TOKEN_NONE: the model has it not */
} marks;

/* Finds the row that the tokenizer has most of. False: it has no row's first three. */
static bool find_marks(const mt_tokenizer *tokenizer, marks *out)
{
    size_t most = 0;

    for (size_t i = 0; tokenizer && i < MT_COUNT(spellings); i++) {
        marks found;
        size_t count = 0;

        for (size_t k = 0; k < MARKS; k++) {
            const char *spelling = spellings[i][k];

            found.ids[k] = spelling ? mt_tokenizer_find(tokenizer, spelling, strlen(spelling)) : MT_TOKEN_NONE;
            count += found.ids[k] != MT_TOKEN_NONE;
        }
        if (count > most && found.ids[PREFIX] != MT_TOKEN_NONE && found.ids[SUFFIX] != MT_TOKEN_NONE &&
            found.ids[MIDDLE] != MT_TOKEN_NONE) {
            *out = found;
            most = count;
        }
    }
    return most > 0;
}

/* A list of pieces that is large enough. */
typedef struct list {
    mt_ask_piece *at;
    size_t count;
    const marks *marks; /* in the arena */
} list;

/* Adds a token; one that the model has not is left out. */
static void add_mark(list *l, size_t mark)
{
    if (l->marks->ids[mark] != MT_TOKEN_NONE)
        l->at[l->count++] = (mt_ask_piece){.ids = &l->marks->ids[mark], .count = 1};
}

static void add_text(list *l, mt_chat_text text)
{
    if (text.len)
        l->at[l->count++] = (mt_ask_piece){.text = text, .plain = true};
}

static void add_words(list *l, const char *words)
{
    add_text(l, (mt_chat_text){.data = words, .len = strlen(words)});
}

/* Adds the text of another file, behind its name or, where the model has no token for that, behind a blank line. */
static void add_file(list *l, const json_t *file)
{
    const json_t *name = json_object_get(file, "filename");

    add_mark(l, FILE_NAME);
    if (l->marks->ids[FILE_NAME] != MT_TOKEN_NONE) {
        if (json_is_string(name))
            add_text(l, mt_chat_text_of(name));
        add_words(l, "\n");
    }
    add_text(l, mt_chat_text_of(json_object_get(file, "text")));
    if (l->marks->ids[FILE_NAME] == MT_TOKEN_NONE)
        add_words(l, "\n\n");
}

/* Of a prompt without other files nothing stands before the prefix, since models learn most from single files. */
static void add_extra(list *l, const json_t *extra)
{
    if (json_array_size(extra) == 0)
        return;
    if (l->marks->ids[REPO] != MT_TOKEN_NONE) {
        add_mark(l, REPO);
        add_words(l, "repository\n");
    }
    for (size_t i = 0; i < json_array_size(extra); i++)
        add_file(l, json_array_get(extra, i));
    if (l->marks->ids[FILE_NAME] != MT_TOKEN_NONE) {
        add_mark(l, FILE_NAME);
        add_words(l, "file\n");
    }
}

static bool has_stop(const mt_ask *ask, uint32_t id)
{
    for (size_t i = 0; i < ask->sampling.stop_count; i++)
        if (ask->sampling.stop_ids[i] == id)
            return true;
    return false;
}

/* A model that goes on with another gap or file has ended its answer. */
static bool add_stops(mt_ask *ask, const marks *m, mt_failure *why)
{
    const size_t count = ask->sampling.stop_count;
    uint32_t *ids = mt_arena_alloc(ask->arena, (count + MARKS) * sizeof(*ids));

    if (!ids)
        return mt_failure_memory(why, NULL);
    if (count)
        memcpy(ids, ask->sampling.stop_ids, count * sizeof(*ids));
    ask->sampling.stop_ids = ids;
    for (size_t i = 0; i < MARKS && ask->sampling.stop_count < MT_LIMIT_STOP_IDS; i++)
        if (m->ids[i] != MT_TOKEN_NONE && !has_stop(ask, m->ids[i]))
            ids[ask->sampling.stop_count++] = m->ids[i];
    return true;
}

bool mt_infill_pieces(const mt_served *served, mt_ask *ask, const mt_ask_infill *gap, const mt_ask_piece **out,
                      size_t *count, mt_failure *why)
{
    enum { OF_A_FILE = 4, OTHERS = 12 }; /* pieces at most */
    marks *m = mt_arena_alloc(ask->arena, sizeof(*m));
    list l = {.marks = m};

    l.at = mt_arena_alloc(ask->arena, (OF_A_FILE * json_array_size(gap->extra) + OTHERS) * sizeof(*l.at));
    if (!m || !l.at)
        return mt_failure_memory(why, gap->field);
    if (!find_marks(served->tokenizer, m))
        return mt_failure_unsupported(why, gap->field,
                                      "needs a model with tokens for text that is filled in, and \"%s\" has none: "
                                      "leave it out, or ask for a model that was trained to fill in",
                                      served->name);
    add_extra(&l, gap->extra);
    add_mark(&l, PREFIX);
    add_text(&l, gap->prefix);
    add_text(&l, gap->prompt);
    add_mark(&l, SUFFIX);
    add_text(&l, gap->suffix);
    add_mark(&l, MIDDLE);
    *out = l.at;
    *count = l.count;
    return add_stops(ask, m, why);
}
