/* tokenizer.json from a GGUF file's keys (gguf_tokenizer.h), in the form that the models' own files have. */
#include "weights/gguf_tokenizer.h"

#include <string.h>

#include "base/json_write.h"
#include "weights/gguf_vocab.h"
#include "weights/limits.h"

#define MERGES "tokenizer.ggml.merges"
#define WHOLE "tokenizer.huggingface.json" /* a tokenizer.json as it is, which few files have */

/* Tokens around a text; MT_GGUF_NO_TOKEN: none. */
typedef struct around {
    uint32_t before, behind;
} around;

bool mt_gguf_has_tokenizer(const mt_gguf *g)
{
    return mt_gguf_has(g, "tokenizer.ggml.model") || mt_gguf_has(g, WHOLE);
}

static bool fail_full(const mt_buf *out, mt_error *err)
{
    return mt_fail(err, MT_E_TOO_LARGE, "its tokenizer would have more than %zu bytes as a tokenizer.json", out->limit);
}

static bool find_around(around *a, const mt_gguf_vocab *v, const mt_gguf *g, mt_error *err)
{
    const bool words = v->kind == MT_GGUF_WORDPIECE;
    const bool roberta = v->pre && v->pre->roberta;
    const bool bos = v->pre ? v->pre->bos || roberta : v->kind != MT_GGUF_UNIGRAM;

    if (!mt_gguf_vocab_id(v, g, "tokenizer.ggml.bos_token_id", &a->before, err) ||
        !mt_gguf_vocab_id(v, g, words ? "tokenizer.ggml.seperator_token_id" : "tokenizer.ggml.eos_token_id", &a->behind,
                          err))
        return false;
    if (words) {
        a->before = a->before != MT_GGUF_NO_TOKEN ? a->before : mt_gguf_vocab_find(v, "[CLS]", 5);
        a->behind = a->behind != MT_GGUF_NO_TOKEN ? a->behind : mt_gguf_vocab_find(v, "[SEP]", 5);
        return true;
    }
    if (!mt_gguf_bool(g, "tokenizer.ggml.add_bos_token", bos) && v->kind != MT_GGUF_MARKED)
        a->before = MT_GGUF_NO_TOKEN;
    if (!mt_gguf_bool(g, "tokenizer.ggml.add_eos_token", v->kind == MT_GGUF_UNIGRAM || roberta))
        a->behind = MT_GGUF_NO_TOKEN;
    return true;
}

static bool has_text(const mt_gguf_vocab *v, uint32_t id)
{
    return id != MT_GGUF_NO_TOKEN && v->tokens[id].len > 0;
}

static void write_place(const mt_gguf_vocab *v, uint32_t id, mt_buf *out)
{
    if (!has_text(v, id))
        return;
    mt_json_write(out, "{'SpecialToken':{");
    mt_json_text(out, "id", v->tokens[id].text, v->tokens[id].len);
    mt_json_write(out, "'type_id':0}}");
}

static void write_placed(const mt_gguf_vocab *v, uint32_t id, mt_buf *out)
{
    const mt_gguf_token *token = &v->tokens[id];

    if (!has_text(v, id))
        return;
    mt_json_text(out, NULL, token->text, token->len);
    mt_json_write(out, ":{");
    mt_json_text(out, "id", token->text, token->len);
    mt_json_write(out, "'ids':[%u],'tokens':[", id);
    mt_json_text(out, NULL, token->text, token->len);
    mt_json_write(out, "]}");
}

static void write_post_processor(const mt_gguf_vocab *v, const around *a, mt_buf *out)
{
    if (!has_text(v, a->before) && !has_text(v, a->behind)) {
        mt_json_write(out, "'post_processor':null");
        return;
    }
    mt_json_write(out, "'post_processor':{'type':'TemplateProcessing','single':[");
    write_place(v, a->before, out);
    mt_json_write(out, "{'Sequence':{'id':'A','type_id':0}}");
    write_place(v, a->behind, out);
    mt_json_write(out, "],'special_tokens':{");
    write_placed(v, a->before, out);
    if (a->behind != a->before)
        write_placed(v, a->behind, out);
    mt_json_write(out, "}}");
}

static void write_added(const mt_gguf_vocab *v, mt_buf *out)
{
    const bool roberta = v->kind == MT_GGUF_UNIGRAM || (v->pre && v->pre->roberta);

    mt_json_write(out, "'added_tokens':[");
    for (size_t i = 0; i < v->count; i++) {
        const mt_gguf_token *token = &v->tokens[i];
        const bool mask = roberta && token->len == 6 && memcmp(token->text, "<mask>", 6) == 0;

        if (token->len == 0 || (token->type != MT_GGUF_UNKNOWN && token->type != MT_GGUF_CONTROL &&
                                token->type != MT_GGUF_USER_DEFINED && !token->special))
            continue;
        mt_json_write(out, "{'id':%zu,", i);
        mt_json_text(out, "content", token->text, token->len);
        mt_json_write(out, "'single_word':false,'lstrip':%hhd,'rstrip':false,'normalized':false,'special':%hhd}", mask,
                      token->special);
    }
    mt_json_write(out, "]");
}

static bool has_bytes(const mt_gguf_vocab *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->tokens[i].type == MT_GGUF_BYTE)
            return true;
    return false;
}

static void write_vocab(const mt_gguf_vocab *v, mt_buf *out)
{
    mt_json_write(out, "'vocab':{");
    for (size_t i = 0; i < v->count; i++)
        if (v->tokens[i].len > 0) {
            mt_json_text(out, NULL, v->tokens[i].text, v->tokens[i].len);
            mt_json_write(out, ":%zu", i);
        }
    mt_json_write(out, "}");
}

/* "left right" in the file; a token may begin with a blank, but has none behind its first character. */
static bool write_merge(const mt_gguf_array *merges, size_t i, mt_buf *out)
{
    mt_gguf_text merge;
    const char *blank;

    if (!mt_gguf_array_string(merges, i, &merge) || merge.len < 3)
        return false;
    blank = memchr(merge.at + 1, ' ', merge.len - 1);
    if (!blank || blank == merge.at + merge.len - 1)
        return false;
    mt_json_write(out, "[");
    mt_json_text(out, NULL, merge.at, (size_t)(blank - merge.at));
    mt_json_text(out, NULL, blank + 1, (size_t)(merge.at + merge.len - blank - 1));
    mt_json_write(out, "]");
    return true;
}

static bool write_merges(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out, mt_error *err)
{
    const mt_gguf_array *merges = mt_gguf_array_of(g, MERGES);

    if (!merges && v->kind == MT_GGUF_SCORED)
        return mt_gguf_merges_derive(v, out, err);
    if (!merges || mt_gguf_count(merges) > MT_LIMIT_VOCAB)
        return mt_fail(err, MT_E_INVALID, "\"" MERGES "\" is not a list of at most %u merges; download the file again",
                       MT_LIMIT_VOCAB);
    mt_json_write(out, "'merges':[");
    for (size_t i = 0; i < mt_gguf_count(merges); i++)
        if (!write_merge(merges, i, out))
            return mt_fail(err, MT_E_INVALID, "merge %zu in \"" MERGES "\" is not two tokens; download the file again",
                           i);
    mt_json_write(out, "]");
    return true;
}

static bool write_bpe(const mt_gguf_vocab *v, const mt_gguf *g, uint32_t unk, mt_buf *out, mt_error *err)
{
    const bool marked = v->kind != MT_GGUF_BYTE_LEVEL, bytes = marked && has_bytes(v);
    const bool ignore_merges = v->pre && v->pre->ignore_merges;

    mt_json_write(out, "'model':{'type':'BPE','dropout':null,");
    if (marked && has_text(v, unk))
        mt_json_text(out, "unk_token", v->tokens[unk].text, v->tokens[unk].len);
    mt_json_write(out,
                  "'continuing_subword_prefix':null,'end_of_word_suffix':null,'fuse_unk':%hhd,'byte_fallback':%hhd,"
                  "'ignore_merges':%hhd",
                  marked, bytes, ignore_merges);
    write_vocab(v, out);
    if (!write_merges(v, g, out, err))
        return false;
    mt_json_write(out, "}");
    return true;
}

static bool write_wordpiece(const mt_gguf_vocab *v, uint32_t unk, mt_buf *out, mt_error *err)
{
    unk = unk != MT_GGUF_NO_TOKEN ? unk : mt_gguf_vocab_find(v, "[UNK]", 5);
    if (!has_text(v, unk))
        return mt_fail(err, MT_E_INVALID, "\"tokenizer.ggml.unknown_token_id\" is missing; convert the model again");
    mt_json_write(out, "'model':{'type':'WordPiece',");
    mt_json_text(out, "unk_token", v->tokens[unk].text, v->tokens[unk].len);
    mt_json_write(out, "'continuing_subword_prefix':'##','max_input_chars_per_word':100");
    write_vocab(v, out);
    mt_json_write(out, "}");
    return true;
}

/* Holes are filled with pieces that nothing is better than: the lowest score counts for unknown characters, too. */
static void write_pieces(const mt_gguf_vocab *v, uint32_t unk, mt_buf *out)
{
    double least = 0;

    for (size_t i = 0; i < v->count; i++)
        if (v->tokens[i].type != MT_GGUF_UNUSED && (double)v->tokens[i].score < least)
            least = (double)v->tokens[i].score;
    mt_json_write(out, "'model':{'type':'Unigram',");
    if (unk != MT_GGUF_NO_TOKEN)
        mt_json_write(out, "'unk_id':%u", unk);
    mt_json_write(out, "'byte_fallback':%hhd,'vocab':[", has_bytes(v));
    for (size_t i = 0; i < v->count; i++) {
        const mt_gguf_token *token = &v->tokens[i];
        const bool hole = token->len == 0 || token->type == MT_GGUF_UNUSED;

        mt_json_write(out, "[");
        if (token->len > 0)
            mt_json_text(out, NULL, token->text, token->len);
        else
            mt_buf_printf(out, "\"[PAD%zu]\"", i);
        mt_json_write(out, "%.17g]", hole ? least : (double)token->score);
    }
    mt_json_write(out, "]}");
}

static bool write_model(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out, mt_error *err)
{
    uint32_t unk;

    if (!mt_gguf_vocab_id(v, g, "tokenizer.ggml.unknown_token_id", &unk, err))
        return false;
    for (uint32_t i = 0; i < v->count && unk == MT_GGUF_NO_TOKEN; i++)
        if (v->tokens[i].type == MT_GGUF_UNKNOWN)
            unk = i;
    if (v->kind == MT_GGUF_WORDPIECE)
        return write_wordpiece(v, unk, out, err);
    if (v->kind != MT_GGUF_UNIGRAM)
        return write_bpe(v, g, unk, out, err);
    write_pieces(v, unk, out);
    return true;
}

static bool write_tokenizer(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out, mt_error *err)
{
    around a;

    if (!find_around(&a, v, g, err))
        return false;
    mt_json_write(out, "{'version':'1.0'");
    write_added(v, out);
    mt_gguf_stages_write(v, g, out);
    write_post_processor(v, &a, out);
    if (!write_model(v, g, out, err))
        return false;
    mt_json_write(out, "}");
    return !out->full || fail_full(out, err);
}

bool mt_gguf_tokenizer(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    mt_gguf_vocab v;
    mt_gguf_text whole;
    bool ok;

    if (mt_gguf_string(g, WHOLE, &whole))
        return mt_buf_add(out, whole.at, whole.len) || fail_full(out, err);
    ok = mt_gguf_vocab_read(&v, g, err) && write_tokenizer(&v, g, out, err);
    mt_gguf_vocab_free(&v);
    return ok;
}
