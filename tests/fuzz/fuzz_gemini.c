/* A body of :generateContent, :countTokens, :embedContent or :batchEmbedContents, of arbitrary bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(&mt_gemini_stream, data, size);
    try_body(&mt_gemini_count, data, size);
    try_body(&mt_gemini_embed, data, size);
    return try_body(&mt_gemini_embed_batch, data, size);
}
