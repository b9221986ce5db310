#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "http/http.h"

bool mt_http_secret_equal(const char *given, const char *expected)
{
    unsigned char a[SHA256_DIGEST_LENGTH], b[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)given, strlen(given), a);
    SHA256((const unsigned char *)expected, strlen(expected), b);
    return CRYPTO_memcmp(a, b, sizeof(a)) == 0;
}
