/* A body of /completion or /infill, of arbitrary bytes. */
#include "ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(&mt_llama_completion, data, size);
    return try_body(&mt_llama_infill, data, size);
}
