/* A file of keys of arbitrary bytes: each key that is read has an account, a line that is refused has a sentence, and
   reading the same again changes nothing. */
#include <string.h>

#include "scratch.h"
#include "server/calls/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = scratch_put("keys", data, size);
    const mt_option_list none = {0};
    mt_keys keys = {0};
    mt_error err = {0};

    if (mt_keys_read(&keys, &none, path, &err)) {
        const size_t count = keys.count;

        for (size_t i = 0; i < count; i++)
            assert(keys.at[i].account);
        assert(!mt_keys_find(&keys, "a key that nobody has written anywhere"));
        assert(mt_keys_renew(&keys, &none, path, &err) && keys.count == count);
    } else {
        assert(err.code != MT_OK && strlen(err.text) > 0);
    }
    mt_keys_free(&keys);
    return 0;
}
