/* What a message of LM Studio's SDKs is about: the members that say so, read without the rest. */
#ifndef MT_API_LMSTUDIO_ENVELOPE_H
#define MT_API_LMSTUDIO_ENVELOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a type or an endpoint that is known, and more; of a key. NUL included; what is longer is read as empty. */
enum { MT_LMSTUDIO_WORD = 40, MT_LMSTUDIO_KEY = 256 };

typedef struct mt_lmstudio_envelope {
    char type[MT_LMSTUDIO_WORD], endpoint[MT_LMSTUDIO_WORD];
    char said[MT_LMSTUDIO_WORD]; /* the type of what is sent over a channel */
    int64_t number;              /* of the call or the channel; -1: none */
    bool greets;                 /* it is the first message of a connection */
    char passkey[MT_LMSTUDIO_KEY], client[MT_LMSTUDIO_KEY];
} mt_lmstudio_envelope;

/* Reads the beginning of a message: clients write what is wanted there. What is not there, or no JSON, stays empty. */
mt_lmstudio_envelope mt_lmstudio_envelope_read(const char *message, size_t len);

#endif
