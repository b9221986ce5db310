/* See chat_wrap.h. */
#include "cli/chat_wrap.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utf8proc.h>

#include "base/utf8.h"

enum { TAB = 8 };

size_t mt_chat_columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void end_word(mt_chat_wrap *w)
{
    w->len = w->width = 0;
}

static void end_line(mt_chat_wrap *w, FILE *out)
{
    fputc('\n', out);
    w->column = 0;
}

/* Moves the word that is not complete to the next line, unless it began this line or was too long to keep. */
static void carry_word(mt_chat_wrap *w, size_t columns, size_t width, FILE *out)
{
    const bool whole = w->width > 0 && w->width < w->column && w->width + width <= columns;

    /* After the last column terminals differ in where the cursor is: count from the first column instead */
    if (whole) {
        fputc('\r', out);
        if (w->column > w->width)
            fprintf(out, "\033[%zuC", w->column - w->width);
        fputs("\033[K", out);
    }
    end_line(w, out);
    if (whole) {
        fwrite(w->word, 1, w->len, out);
        w->column = w->width;
    } else
        end_word(w);
}

static void put_blank(mt_chat_wrap *w, size_t columns, char blank, FILE *out)
{
    const size_t width = blank == '\t' ? TAB - w->column % TAB : 1;

    end_word(w);
    if (w->column + width > columns) { /* a line break replaces the space */
        end_line(w, out);
        return;
    }
    for (size_t i = 0; i < width; i++)
        fputc(' ', out);
    w->column += width;
}

static void put_char(mt_chat_wrap *w, size_t columns, const char *text, size_t len, FILE *out)
{
    const int found = utf8proc_charwidth((utf8proc_int32_t)mt_utf8_at(text));
    const size_t width = found > 0 ? (size_t)found : 0;

    if (w->column + width > columns)
        carry_word(w, columns, width, out);
    fwrite(text, 1, len, out);
    w->column += width;
    if (w->len + len <= sizeof(w->word) && (w->width > 0 || w->len == 0)) {
        memcpy(w->word + w->len, text, len);
        w->len += len;
        w->width += width;
    } else
        w->width = 0;
    if (width > 1) /* wide characters (Chinese, Japanese): a line may end after any of them */
        end_word(w);
}

void mt_chat_wrap_put(mt_chat_wrap *w, size_t columns, const char *text, FILE *out)
{
    size_t left = strlen(text);

    while (left > 0) {
        const size_t len = mt_utf8_length(text, left);
        const unsigned char first = (unsigned char)*text;

        if (*text == '\n') {
            end_word(w);
            end_line(w, out);
        } else if (*text == ' ' || *text == '\t')
            put_blank(w, columns, *text, out);
        else if (len > 0 && first >= 0x20 && first != 0x7F && !(first == 0xC2 && (unsigned char)text[1] < 0xA0))
            put_char(w, columns, text, len, out);
        text += len ? len : 1;
        left -= len ? len : 1;
    }
}
