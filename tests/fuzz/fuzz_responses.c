/* A body of /v1/responses, of arbitrary bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return try_body(&mt_openai_responses, data, size);
}
