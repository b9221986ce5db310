#include "template/strftime.h"

#include <string.h>
#include <time.h>

enum { FIELD_MAX = 128 };

/* One directive. The time carries no zone, so %z and %Z are empty, and no fraction of a second. */
static void add_field(mt_tpl_build *b, const struct tm *now, const char *directive, size_t len)
{
    char format[8] = {0}, text[FIELD_MAX];
    char letter = directive[len - 1];

    if (letter == 'f') {
        mt_tpl_build_lit(b, "000000");
        return;
    }
    if (letter == 'z' || letter == 'Z')
        return;
    memcpy(format, directive, len);
    mt_tpl_build_add(b, text, strftime(text, sizeof(text), format, now), false);
}

mt_tpl_str *mt_tpl_strftime(mt_tpl_run *run, const mt_tpl_str *format)
{
    struct tm now = {0};
    mt_tpl_build b;
    time_t clock;

    if (run->now)
        now = *run->now;
    else {
        clock = time(NULL);
        localtime_r(&clock, &now);
    }
    mt_tpl_build_init(&b, run);
    for (size_t at = 0; at < format->len && !run->failed;) {
        const char *sign = memchr(format->data + at, '%', format->len - at);
        size_t end = sign ? (size_t)(sign - format->data) : format->len, len = 2;

        mt_tpl_build_sub(&b, format, at, end);
        at = end;
        if (!sign)
            break;
        if (at + 2 < format->len && strchr("-_0^#", sign[1])) /* a flag of the C library */
            len = 3;
        if (at + len > format->len) {
            mt_tpl_build_sub(&b, format, at, format->len);
            break;
        }
        if ((unsigned char)sign[len - 1] < 0x80)
            add_field(&b, &now, sign, len);
        else
            mt_tpl_build_sub(&b, format, at, at + --len);
        at += len;
    }
    return mt_tpl_build_end(&b);
}
