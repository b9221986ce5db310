/* See prefix.h. */
#include "server/prepare/prefix.h"

#include <stdbool.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "base/compiler.h"
#include "base/hex.h"

/* Adds a text, or the texts of a list of parts, to the digest. False: there was none. Gemini's parts stand in an
   object. */
static bool add_text(EVP_MD_CTX *sum, const json_t *content)
{
    content = json_is_object(content) ? json_object_get(content, "parts") : content;
    bool any = json_is_string(content);

    if (any)
        EVP_DigestUpdate(sum, json_string_value(content), json_string_length(content));
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *text = json_object_get(json_array_get(content, i), "text");

        if (json_is_string(text))
            EVP_DigestUpdate(sum, json_string_value(text), json_string_length(text));
        any = any || json_is_string(text);
    }
    return any;
}

/* The part of the body that the model reads first, in any API. */
static const json_t *first_of(const json_t *body)
{
    static const char *const alone[] = {"system", "instructions", "systemInstruction", "system_instruction"},
                             *const listed[] = {"messages", "input", "prompt", "contents"};

    for (size_t i = 0; i < MT_COUNT(alone); i++) {
        const json_t *given = json_object_get(body, alone[i]);

        if (given && !json_is_null(given))
            return given;
    }
    for (size_t i = 0; i < MT_COUNT(listed); i++) {
        const json_t *list = json_object_get(body, listed[i]);
        const json_t *first = json_array_get(list, 0), *content = json_object_get(first, "content");

        if (list && !json_is_null(list))
            return !json_is_array(list) ? list : content ? content : first;
    }
    return NULL;
}

void mt_prefix_name(const json_t *body, char out[MT_PREFIX_SIZE])
{
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    uint8_t digest[32];

    out[0] = '\0';
    if (sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) && add_text(sum, first_of(body)) &&
        EVP_DigestFinal_ex(sum, digest, NULL))
        mt_hex_text(digest, sizeof(digest), out);
    EVP_MD_CTX_free(sum);
}
