/* A body of /v1/chat/completions or /v1/completions, of arbitrary bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(&mt_openai_chat, data, size);
    return try_body(&mt_openai_completions, data, size);
}
