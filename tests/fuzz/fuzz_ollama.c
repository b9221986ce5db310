/* A body of /api/chat, /api/generate, /api/embed or /api/embeddings, of arbitrary bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(&mt_ollama_chat, data, size);
    try_body(&mt_ollama_generate, data, size);
    try_body(&mt_ollama_embed, data, size);
    return try_body(&mt_ollama_embeddings, data, size);
}
