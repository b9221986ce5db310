/* Encoders as GGUF files (gguf_arch.h): config.json and how they pool. BERT, RoBERTa and XLM-R have one architecture,
   and their tokenizers tell them apart. */
#include <math.h>
#include <string.h>

#include "base/json_write.h"
#include "weights/gguf_arch.h"

/* What "pooling_type" numbers. */
enum { POOL_MEAN = 1, POOL_FIRST, POOL_LAST };

#define MOST_LABELS 1000

static uint64_t rows_of(const mt_gguf *g, const char *name)
{
    const mt_tensor_info *t = mt_gguf_find(g, name);
    return !t ? 0 : t->dims == 2 ? t->shape[0] : t->dims == 1;
}

static bool is_bert(const mt_gguf *g)
{
    mt_gguf_text model;
    return mt_gguf_string(g, "tokenizer.ggml.model", &model) && mt_gguf_text_is(model, "bert");
}

static const char *type_of(const mt_gguf *g)
{
    mt_gguf_text model;
    if (is_bert(g))
        return "bert";
    return mt_gguf_string(g, "tokenizer.ggml.model", &model) && mt_gguf_text_is(model, "gpt2") ? "roberta"
                                                                                               : "xlm-roberta";
}

/* The id of padding; BERT's is 0, RoBERTa's 1, unless the file says otherwise. */
static int64_t pad_of(const mt_gguf *g)
{
    const int64_t usual = is_bert(g) ? 0 : 1;
    int64_t pad = usual;
    return mt_gguf_int(g, "tokenizer.ggml.padding_token_id", &pad) && pad >= 0 && pad < MT_LIMIT_VOCAB ? pad : usual;
}

uint64_t mt_gguf_encoder_rows(const mt_gguf *g)
{
    return is_bert(g) ? 0 : (uint64_t)pad_of(g) + 1;
}

/* A classifier with its labels. BERT's reads the result of the pooler. */
static bool put_head(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    const uint64_t labels = rows_of(g, "cls.output.weight");
    if (labels == 0)
        return true;
    if (is_bert(g))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "its classifier reads a pooler, which llama.cpp's converter leaves out: scores would be others; "
                       "take the model's own folder");
    mt_json_write(out, "'architectures':['XLMRobertaForSequenceClassification'],'id2label':{");
    for (uint64_t i = 0; i < labels && i < MOST_LABELS; i++)
        mt_buf_printf(out, "%s\"%llu\":\"%llu\"", i ? "," : "", (unsigned long long)i, (unsigned long long)i);
    mt_json_write(out, "}");
    return true;
}

bool mt_gguf_encoder_config(const mt_gguf *g, const mt_gguf_arch *arch, mt_buf *out, mt_error *err)
{
    static const struct {
        const char *to, *from;
    } sizes[] = {{"hidden_size", "embedding_length"},
                 {"num_hidden_layers", "block_count"},
                 {"num_attention_heads", "attention.head_count"},
                 {"intermediate_size", "feed_forward_length"}};
    double eps = 0;

    mt_json_write(out, "{'model_type':%s", type_of(g));
    for (size_t i = 0; i < MT_COUNT(sizes); i++) {
        const int64_t size = mt_gguf_own_int(g, arch, sizes[i].from, 0);
        if (size < 1)
            return mt_fail(err, MT_E_INVALID, "the file's \"%s.%s\" is %lld, or is not there; download it again",
                           arch->name, sizes[i].from, (long long)size);
        mt_json_write(out, "%s:%lld", sizes[i].to, (long long)size);
    }
    if (!mt_gguf_own_float(g, arch, "attention.layer_norm_epsilon", &eps) || !isfinite(eps))
        return mt_fail(err, MT_E_INVALID,
                       "the file has no number \"%s.attention.layer_norm_epsilon\"; download it again", arch->name);
    mt_json_write(out, "'layer_norm_eps':%.9g,'pad_token_id':%lld", eps, (long long)pad_of(g));
    mt_json_write(out, "'vocab_size':%llu,'type_vocab_size':%llu,'max_position_embeddings':%llu",
                  (unsigned long long)rows_of(g, "token_embd.weight"),
                  (unsigned long long)rows_of(g, "token_types.weight"),
                  (unsigned long long)(rows_of(g, "position_embd.weight") + mt_gguf_encoder_rows(g)));
    if (!put_head(g, out, err))
        return false;
    mt_json_write(out, "}");
    return !out->full || mt_fail(err, MT_E_TOO_LARGE, "the file's config would have more than %zu bytes", out->limit);
}

/* "pooling_type" of the architecture; 0 where there is none. */
static int64_t pooling_of(const mt_gguf *g)
{
    mt_error err = {0};
    const mt_gguf_arch *arch = mt_gguf_arch_of(g, &err);
    return arch ? mt_gguf_own_int(g, arch, "pooling_type", 0) : 0;
}

bool mt_gguf_has_pooling(const mt_gguf *g)
{
    const int64_t type = pooling_of(g);
    return type >= POOL_MEAN && type <= POOL_LAST;
}

/* Whether vectors are scaled to length 1 is not in the file; llama.cpp's programs and nearly all such models do it. */
bool mt_gguf_modules(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    (void)g;
    mt_json_write(out, "[{'type':'gguf.Transformer','path':''},{'type':'gguf.Pooling','path':'1_Pooling'},"
                       "{'type':'gguf.Normalize','path':'2_Normalize'}]");
    return !out->full || mt_fail(err, MT_E_TOO_LARGE, "no room for modules.json");
}

bool mt_gguf_pooling(const mt_gguf *g, mt_buf *out, mt_error *err)
{
    static const char *const names[] = {[POOL_MEAN] = "mean", [POOL_FIRST] = "cls", [POOL_LAST] = "lasttoken"};
    mt_json_write(out, "{'pooling_mode':%s}", names[pooling_of(g)]);
    return !out->full || mt_fail(err, MT_E_TOO_LARGE, "no room for the settings of pooling");
}
