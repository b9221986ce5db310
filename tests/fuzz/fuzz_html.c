/* A page of HTML of arbitrary bytes: its text has at most one byte more than the page, ends a line, is UTF-8 where the
   page is, and is refused exactly where it does not fit. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "files/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_utf8(const char *text, size_t len)
{
    for (size_t i = 0, size; i < len; i += size)
        if (!(size = mt_utf8_length(text + i, len - i)))
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *page = mt_alloc(size ? size : 1); /* a copy of this size, so that a sanitizer sees reads behind its end */
    mt_buf text = {.limit = size + 1}, half = {.limit = size / 2};
    bool fits;

    if (size)
        memcpy(page, data, size);
    assert(mt_files_html(&text, page, size));
    assert(text.len <= size + 1 && (text.len == 0 || text.data[text.len - 1] == '\n'));
    assert(!is_utf8(page, size) || is_utf8(text.data, text.len));
    fits = mt_files_html(&half, page, size);
    assert(fits == (text.len <= size / 2));
    assert(!fits || text.len == 0 || memcmp(half.data, text.data, text.len) == 0);
    (void)mt_files_is_html(page, size, page, size);
    mt_buf_free(&half);
    mt_buf_free(&text);
    mt_free(page);
    return 0;
}
