/* See postprocessor.h. */
#include "text/postprocessor.h"

#include "text/limits.h"
#include "weights/limits.h"

#include <string.h>

/* Adds a token before the text, as number `place` of those that this processor adds; they stand before the tokens of
   earlier processors. */
static bool add_before(mt_tok_post *post, size_t place, uint32_t id, mt_error *err)
{
    if (post->before_count == MT_LIMIT_TOKENIZER_AROUND)
        return mt_fail(err, MT_E_TOO_LARGE, "its post_processor puts more than %d tokens before a text",
                       MT_LIMIT_TOKENIZER_AROUND);
    memmove(post->before + place + 1, post->before + place, (post->before_count - place) * sizeof(*post->before));
    post->before[place] = id;
    post->before_count++;
    return true;
}

static bool add_after(mt_tok_post *post, uint32_t id, mt_error *err)
{
    if (post->after_count == MT_LIMIT_TOKENIZER_AROUND)
        return mt_fail(err, MT_E_TOO_LARGE, "its post_processor puts more than %d tokens behind a text",
                       MT_LIMIT_TOKENIZER_AROUND);
    post->after[post->after_count++] = id;
    return true;
}

static bool read_id(const mt_tok_node *node, uint32_t *id)
{
    if (!node || node->kind != MT_JSON_NUMBER || !node->is_int || node->integer < 0 || node->integer >= MT_LIMIT_VOCAB)
        return false;
    *id = (uint32_t)node->integer;
    return true;
}

static bool fail_template(const mt_tok_part *part)
{
    return mt_fail(part->err, MT_E_UNSUPPORTED,
                   "its post_processor \"%.80s\" is not tokens around one text; use another file", part->type);
}

/* Reads "cls" or "sep" of a BERT or RoBERTa processor: ["token", id]. */
static bool read_pair(const mt_tok_part *part, const char *key, uint32_t *id)
{
    const mt_tok_node *pair = mt_tok_node_get(part->node, key);

    if (!pair || pair->kind != MT_JSON_ARRAY_BEGIN || !pair->child || !read_id(pair->child->next, id))
        return fail_template(part);
    return true;
}

static bool add_bert(mt_tok_post *post, const mt_tok_part *part)
{
    uint32_t cls, sep;

    return read_pair(part, "cls", &cls) && read_pair(part, "sep", &sep) && add_before(post, 0, cls, part->err) &&
           add_after(post, sep, part->err);
}

/* The list of ids for a special token of a template. */
static const mt_tok_node *find_ids(const mt_tok_part *part, const mt_tok_node *special)
{
    const mt_tok_node *id = mt_tok_node_get(special, "id"), *tokens = mt_tok_node_get(part->node, "special_tokens");
    const mt_tok_node *token = id && tokens && id->kind == MT_JSON_STRING ? mt_tok_node_get(tokens, id->str) : NULL;
    const mt_tok_node *ids = token ? mt_tok_node_get(token, "ids") : NULL;

    return ids && ids->kind == MT_JSON_ARRAY_BEGIN ? ids : NULL;
}

static bool is_first_text(const mt_tok_node *sequence)
{
    const mt_tok_node *id = mt_tok_node_get(sequence, "id");

    return id && id->kind == MT_JSON_STRING && strcmp(id->str, "A") == 0;
}

/* Reads "single": special tokens, the text, special tokens. */
static bool add_template(mt_tok_post *post, const mt_tok_part *part)
{
    const mt_tok_node *single = mt_tok_part_array(part, "single");
    size_t texts = 0, place = 0;

    if (!single || post->templated)
        return single && fail_template(part); /* a second template would treat the tokens of the first as text */
    post->templated = true;
    for (const mt_tok_node *n = single->child; n; n = n->next) {
        const mt_tok_node *sequence = mt_tok_node_get(n, "Sequence"), *special = mt_tok_node_get(n, "SpecialToken");
        const mt_tok_node *ids = special ? find_ids(part, special) : NULL;
        uint32_t id;

        if (sequence ? !is_first_text(sequence) || texts++ > 0 : !ids)
            return fail_template(part);
        for (const mt_tok_node *i = ids ? ids->child : NULL; i; i = i->next) {
            if (!read_id(i, &id))
                return fail_template(part);
            if (texts == 0 ? !add_before(post, place++, id, part->err) : !add_after(post, id, part->err))
                return false;
        }
    }
    return texts == 1 || fail_template(part);
}

static bool add_part(void *to, const mt_tok_part *part)
{
    mt_tok_post *post = to;

    if (mt_tok_part_is(part, "ByteLevel"))
        return true; /* it changes only offsets */
    if (mt_tok_part_is(part, "TemplateProcessing"))
        return add_template(post, part);
    if (mt_tok_part_is(part, "BertProcessing") || mt_tok_part_is(part, "RobertaProcessing"))
        return add_bert(post, part);
    return mt_tok_part_unknown(part);
}

bool mt_tok_post_init(mt_tok_post *post, const mt_tok_node *node, mt_error *err)
{
    *post = (mt_tok_post){0};
    return !node || node->kind == MT_JSON_NULL ||
           mt_tok_parts_read(node, "post_processor", "processors", add_part, post, err);
}
