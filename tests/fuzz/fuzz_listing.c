/* What a hub says that a model's files are: arbitrary bytes. Whatever is taken from it becomes paths and sizes. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hub/limits.h"
#include "hub/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const mt_remote_file *file)
{
    char name[MT_LIMIT_HUB_NAME + 2];

    assert(strlen(file->name) > 0 && strlen(file->name) < MT_LIMIT_HUB_NAME && file->name[0] != '/');
    snprintf(name, sizeof(name), "/%s/", file->name);
    assert(!strstr(name, "//") && !strstr(name, "/../") && !strstr(name, "/./") && !strchr(name, '\\'));
    if (file->digest)
        assert(mt_remote_is_digest(file->digest) && file->size <= MT_LIMIT_PULL_FILE_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_error err = {0};
    mt_listing list;

    if (mt_listing_read(&list, (const char *)data, size, &err)) {
        assert(mt_hub_is_commit(list.commit) && list.count <= MT_LIMIT_PULL_FILES);
        for (size_t i = 0; i < list.count; i++) {
            check(&list.files[i]);
            assert(i == 0 || strcmp(list.files[i - 1].name, list.files[i].name) < 0);
        }
    } else
        assert(err.code != MT_OK && strlen(err.text) > 0);
    mt_listing_free(&list);
    return 0;
}
