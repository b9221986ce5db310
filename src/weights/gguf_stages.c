/* Normalizers, pre-tokenizers and decoders of tokenizer.json for each kind of vocabulary (gguf_vocab.h). */
#include "base/json_write.h"
#include "weights/gguf_vocab.h"

/* Whether the vocabulary is Mistral's with tokens for instructions: only the very first piece of a text then gets a
   blank before it, while older vocabularies of this kind add one behind each special token, too. */
static bool prefix_once(const mt_gguf_vocab *v)
{
    const uint32_t id = mt_gguf_vocab_find(v, "[INST]", 6);

    return id != MT_GGUF_NO_TOKEN && v->tokens[id].special;
}

/* BPE over characters with U+2581 for blanks. */
static void write_marked(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out)
{
    static const char replace[] = "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}";
    const bool prefix = mt_gguf_bool(g, "tokenizer.ggml.add_space_prefix", v->kind == MT_GGUF_SCORED);

    if (prefix && prefix_once(v))
        mt_json_write(out, "'normalizer':null,'pre_tokenizer':{'type':'Metaspace','replacement':'▁',"
                           "'prepend_scheme':'first','split':false}");
    else if (prefix)
        mt_json_write(out,
                      "'normalizer':{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'▁'},%-s]},"
                      "'pre_tokenizer':null",
                      replace);
    else
        mt_json_write(out, "'normalizer':%-s,'pre_tokenizer':null", replace);
    mt_json_write(out, "'decoder':{'type':'Sequence','decoders':[{'type':'Replace','pattern':{'String':'▁'},"
                       "'content':' '},{'type':'ByteFallback'},{'type':'Fuse'}");
    if (prefix)
        mt_json_write(out, "{'type':'Strip','content':' ','start':1,'stop':0}");
    mt_json_write(out, "]}");
}

static void write_bert(const mt_gguf *g, mt_buf *out)
{
    static const char accents[] = "tokenizer.ggml.normalizer.strip_accents";
    const char *strip = !mt_gguf_has(g, accents) ? "null" : mt_gguf_bool(g, accents, true) ? "true" : "false";

    mt_json_write(out,
                  "'normalizer':{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':true,"
                  "'strip_accents':%-s,'lowercase':%hhd},'pre_tokenizer':{'type':'BertPreTokenizer'},"
                  "'decoder':{'type':'WordPiece','prefix':'##','cleanup':true}",
                  strip, mt_gguf_bool(g, "tokenizer.ggml.normalizer.lowercase", true));
}

static void write_base64(const mt_gguf_array *bytes, mt_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t count = mt_gguf_count(bytes);

    for (size_t i = 0; i < count; i += 3) {
        uint32_t word = 0;
        char four[4];

        for (size_t j = 0; j < 3; j++) {
            int64_t byte = 0;

            if (i + j < count)
                mt_gguf_array_int(bytes, i + j, &byte);
            word = word << 8 | (uint32_t)(byte & 0xFF);
        }
        for (size_t j = 0; j < 4; j++)
            four[j] = i + j > count ? '=' : digits[word >> (18 - 6 * j) & 63];
        mt_buf_add(out, four, sizeof(four));
    }
}

static void write_unigram(const mt_gguf *g, mt_buf *out)
{
    const mt_gguf_array *map = mt_gguf_array_of(g, "tokenizer.ggml.precompiled_charsmap");
    const bool prefix = mt_gguf_bool(g, "tokenizer.ggml.add_space_prefix", true);
    const char *scheme = prefix ? "always" : "never";

    if (map && mt_gguf_count(map) > 0) {
        mt_json_write(out, "'normalizer':{'type':'Precompiled','precompiled_charsmap':");
        mt_buf_puts(out, "\"");
        write_base64(map, out);
        mt_buf_puts(out, "\"}");
    } else
        mt_json_write(out, "'normalizer':null");
    mt_json_write(out, "'pre_tokenizer':{'type':'Sequence','pretokenizers':[");
    if (mt_gguf_bool(g, "tokenizer.ggml.remove_extra_whitespaces", false))
        mt_json_write(out, "{'type':'WhitespaceSplit'}");
    mt_json_write(out, "{'type':'Metaspace','replacement':'▁','prepend_scheme':%s,'split':true}]}", scheme);
    mt_json_write(out, "'decoder':{'type':'Metaspace','replacement':'▁','prepend_scheme':%s,'split':true}", scheme);
}

void mt_gguf_stages_write(const mt_gguf_vocab *v, const mt_gguf *g, mt_buf *out)
{
    switch (v->kind) {
    case MT_GGUF_BYTE_LEVEL:
        mt_gguf_pre_write(v->pre, out);
        mt_json_write(out, "'decoder':{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,"
                           "'use_regex':true}");
        break;
    case MT_GGUF_MARKED:
    case MT_GGUF_SCORED: write_marked(v, g, out); break;
    case MT_GGUF_WORDPIECE: write_bert(g, out); break;
    case MT_GGUF_UNIGRAM: write_unigram(g, out); break;
    }
}
