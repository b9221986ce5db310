#include <string.h>

#include "http/http.h"

/* The end of the line at s: CR, LF and CRLF each end one, as readers of event streams see it. */
static size_t line_length(const char *s, size_t len)
{
    size_t n = 0;

    while (n < len && s[n] != '\n' && s[n] != '\r')
        n++;
    return n;
}

bool mt_http_sse_format(mt_buf *out, const char *name, const char *data, size_t len)
{
    if (name && !mt_buf_printf(out, "event: %.*s\n", (int)line_length(name, strlen(name)), name))
        return false;
    for (;;) {
        size_t n = line_length(data, len);

        if (!mt_buf_puts(out, "data: ") || !mt_buf_add(out, data, n) || !mt_buf_add(out, "\n", 1))
            return false;
        if (n == len)
            return mt_buf_add(out, "\n", 1);
        n += n + 1 < len && data[n] == '\r' && data[n + 1] == '\n' ? 2 : 1;
        data += n;
        len -= n;
    }
}
