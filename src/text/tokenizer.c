/* See tokenizer.h. Encoding is in encode.c, decoding in detokenizer.c, reading the file in tokenizer_read.c. */
#include "text/tokenizer.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "text/detokenizer.h"
#include "text/limits.h"
#include "text/tokenizer_parts.h"
#include "weights/folder.h"
#include "weights/gguf_place.h"

mt_tokenizer *mt_tokenizer_parse(const char *json, size_t len, mt_error *err)
{
    mt_tokenizer *t = mt_alloc(sizeof(*t));

    t->arena = mt_arena_new(MT_LIMIT_TOKENIZER_SETTINGS);
    if (mt_tokenizer_read(t, json, len, err))
        return t;
    mt_tokenizer_free(t);
    return NULL;
}

mt_tokenizer *mt_tokenizer_load(const char *path, mt_error *err)
{
    static const char name[] = "tokenizer.json";
    struct stat info;
    const bool regular = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    const bool itself = regular && !mt_gguf_named(path) && !mt_gguf_is_manifest(path);
    mt_folder_file file = {.data = NULL};
    mt_tokenizer *t;

    if (itself ? !mt_file_map(&file.map, path, err) : !mt_folder_open(&file, path, name, err))
        return NULL;
    t = itself ? mt_tokenizer_parse(file.map.data, file.map.size, err) : mt_tokenizer_parse(file.data, file.len, err);
    mt_folder_close(&file);
    if (!t)
        mt_fail_within(err, "\"%s%s%s\"", path, itself ? "" : "/", itself ? "" : name);
    return t;
}

void mt_tokenizer_free(mt_tokenizer *t)
{
    if (!t)
        return;
    mt_tok_words_free(&t->words);
    mt_tok_added_free(&t->added);
    mt_tok_normalizer_free(&t->normalizer);
    mt_tok_pretokenizer_free(&t->pre);
    mt_free(t->tokens);
    mt_arena_free(t->arena);
    mt_free(t);
}

size_t mt_tokenizer_size(const mt_tokenizer *tokenizer)
{
    return tokenizer->size;
}

const char *mt_tokenizer_token(const mt_tokenizer *tokenizer, uint32_t id, size_t *len)
{
    if (id >= tokenizer->size || !tokenizer->tokens[id].text)
        return NULL;
    *len = tokenizer->tokens[id].len;
    return tokenizer->tokens[id].text;
}

uint32_t mt_tokenizer_find(const mt_tokenizer *tokenizer, const char *token, size_t len)
{
    uint32_t id = mt_tok_vocab_id(&tokenizer->added.vocab, token, len);

    return id != MT_TOKEN_NONE ? id : mt_tok_vocab_id(&tokenizer->words.vocab, token, len);
}

bool mt_tokenizer_special(const mt_tokenizer *tokenizer, uint32_t id)
{
    return id < tokenizer->size && tokenizer->tokens[id].special;
}
