/* Put before libcrypto by the loader, it makes a preparation thread that is given the cache_salt "hang" never come
   back: stands for whatever such a thread might one day not end. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <openssl/sha.h>

typedef unsigned char *digest(const unsigned char *data, size_t len, unsigned char *md);

unsigned char *SHA256(const unsigned char *data, size_t len, unsigned char *md)
{
    void *next = dlsym(RTLD_NEXT, "SHA256");
    digest *real;

    while (len == 4 && memcmp(data, "hang", 4) == 0)
        pause();
    memcpy(&real, &next, sizeof(real)); /* C has no other way from one kind of pointer to the other */
    return real(data, len, md);
}
