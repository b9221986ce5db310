/* A body of /v1/chat/completions, /v1/completions, /v1/embeddings, /pooling, /classify, /rerank or /score, of arbitrary
   bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(&mt_openai_chat, data, size);
    try_body(&mt_openai_embeddings, data, size);
    try_body(&mt_pooling, data, size);
    try_body(&mt_classify, data, size);
    try_body(&mt_rerank, data, size);
    try_body(&mt_rerank_v2, data, size);
    try_body(&mt_score, data, size);
    return try_body(&mt_openai_completions, data, size);
}
