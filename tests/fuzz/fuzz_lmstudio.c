/* A message on a WebSocket of LM Studio's SDKs, of arbitrary bytes: what it is about, and as each of the messages that
   the engine answers. */
#include <string.h>

#include "api/lmstudio_envelope.h"
#include "api/lmstudio_socket.h"
#include "ask.h"

static void check_envelope(const uint8_t *data, size_t size)
{
    const mt_lmstudio_envelope e = mt_lmstudio_envelope_read((const char *)data, size);

    assert(memchr(e.type, '\0', sizeof(e.type)) && memchr(e.endpoint, '\0', sizeof(e.endpoint)));
    assert(memchr(e.said, '\0', sizeof(e.said)) && memchr(e.passkey, '\0', sizeof(e.passkey)));
    assert(memchr(e.client, '\0', sizeof(e.client)) && e.number >= -1);
}

/* What is written for any message before it is known what it wants. */
static void check_lines(const uint8_t *data, size_t size)
{
    mt_failure why;
    json_t *body = mt_json_body_parse((const char *)data, size, NULL, &why);
    mt_buf out = {.limit = 4096};

    if (body) {
        (void)mt_lmstudio_named(body);
        mt_lmstudio_close(&out, body);
        assert(out.len > 0 && !out.full);
    }
    mt_buf_free(&out);
    mt_json_body_free(body, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_envelope(data, size);
    check_lines(data, size);
    try_body(&mt_lmstudio_template, data, size);
    try_body(&mt_lmstudio_embed, data, size);
    return try_body(&mt_lmstudio_predict, data, size);
}
