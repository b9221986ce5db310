/* See gguf_pre.h. Patterns stand as the models' own tokenizer.json files have them, so that regex_known.c recognises
   them. */
#include "weights/gguf_pre.h"

#include <string.h>

#include "base/json_write.h"

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1,3}|" SIGNS "[\\r\\n]*" BLANKS
#define QWEN2 CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}|" SIGNS "[\\r\\n]*" BLANKS
#define QWEN35 CONTRACTIONS "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" BLANKS
/* end: what may end a word */
#define CASED(end) LEAD UPPER "*" LOWER "+" end "|" LEAD UPPER "+" LOWER "*" end

static const mt_gguf_pre all[] = {
    {.names = "llama-bpe llama3 llama-v3 lfm2 pixtral", .patterns = {LLAMA3}, .ignore_merges = true, .bos = true},
    {.names = "qwen2 deepseek-r1-qwen", .patterns = {QWEN2}, .nfc = true, .qwen = true},
    {.names = "qwen35", .patterns = {QWEN35}, .nfc = true, .qwen = true},
    {.names = "gpt-4o",
     .patterns = {CASED(CONTRACTIONS "?") "|\\p{N}{1,3}|" SIGNS "[\\r\\n/]*" BLANKS},
     .ignore_merges = true},
    {.names = "tekken",
     .patterns = {CASED("") "|\\p{N}|" SIGNS "[\\r\\n/]*" BLANKS},
     .ignore_merges = true,
     .bos = true},
    {.names = "minimax-m2", .patterns = {CASED(CONTRACTIONS "?") "|\\p{N}{1,3}|" SIGNS "[\\r\\n/]*" BLANKS}},
    {.names = "glm4 chatglm-bpe dbrx smaug-bpe", .patterns = {LLAMA3}},
    {.names = "seed-coder", .patterns = {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" BLANKS}},
    {.names = "smollm refact starcoder", .digits = true},
    {.names = "command-r", .digits = true, .nfc = true},
    {.names = "gpt-2 olmo exaone4"},
    {.names = "roberta-bpe", .roberta = true},
    {.names = "deepseek-coder",
     .patterns = {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+"},
     .digits = true},
    {.names = "deepseek-v3 joyai-llm",
     .patterns = {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                  "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"}},
};

static bool has_name(const char *names, mt_gguf_text name)
{
    while (*names) {
        const size_t len = strcspn(names, " ");

        if (len == name.len && memcmp(names, name.at, len) == 0)
            return true;
        names += len;
        names += *names == ' ';
    }
    return false;
}

const mt_gguf_pre *mt_gguf_pre_find(mt_gguf_text name)
{
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (has_name(all[i].names, name))
            return &all[i];
    return NULL;
}

void mt_gguf_pre_write(const mt_gguf_pre *pre, mt_buf *out)
{
    const bool gpt2 = !pre->patterns[0];

    mt_json_write(out, "'normalizer':%-s,'pre_tokenizer':{'type':'Sequence','pretokenizers':[",
                  pre->nfc ? "{\"type\":\"NFC\"}" : NULL);
    for (size_t i = 0; i < MT_GGUF_PRE_PATTERNS && pre->patterns[i]; i++)
        mt_json_write(out, "{'type':'Split','pattern':{'Regex':%s},'behavior':'Isolated','invert':false}",
                      pre->patterns[i]);
    if (pre->digits)
        mt_json_write(out, "{'type':'Digits','individual_digits':true}");
    mt_json_write(out, "{'type':'ByteLevel','add_prefix_space':false,'trim_offsets':true,'use_regex':%hhd}]}", gpt2);
}
