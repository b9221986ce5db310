/* See text.h. The bytes decide, not what a client calls them. */
#include "files/text.h"

#include <string.h>

#include "base/utf8.h"

/* How files begin that are no text. */
static const struct {
    const char *begin;
    size_t at, len;
    const char *sentence;
} kinds[] = {
    {"%PDF-", 0, 5, "the file is a PDF: send it as a document"},
    {"\x89PNG", 0, 4, "the file is a picture: send it as one, not as a document"},
    {"\xFF\xD8\xFF", 0, 3, "the file is a picture: send it as one, not as a document"},
    {"GIF8", 0, 4, "the file is a picture: send it as one, not as a document"},
    {"WEBP", 8, 4, "the file is a picture: send it as one, not as a document"},
    {"ftyp", 4, 4, "the file is a picture or a video: send it as one, not as a document"},
    {"PK\x03\x04", 0, 4, "the file is an archive, as those of office programs are: send its text"},
    {"\xD0\xCF\x11\xE0", 0, 4, "the file is one of an office program: send its text"},
    {"\xFF\xFE", 0, 2, "the file is UTF-16: send it as UTF-8"},
    {"\xFE\xFF", 0, 2, "the file is UTF-16: send it as UTF-8"},
};

/* Where the first byte is that no text has: one that is no UTF-8, or a control character but those that move; len:
   nowhere. */
static size_t find_wrong(const char *bytes, size_t len)
{
    size_t i = 0;

    while (i < len) {
        const size_t size = mt_utf8_length(bytes + i, len - i);
        const unsigned char c = (unsigned char)bytes[i];

        if (size == 0 || c == 0x7F || (c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1B'))
            return i;
        i += size;
    }
    return len;
}

bool mt_files_text(const char *bytes, size_t len, size_t *begin, mt_error *err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t wrong;

    *begin = len >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (len >= kinds[i].at + kinds[i].len && memcmp(bytes + kinds[i].at, kinds[i].begin, kinds[i].len) == 0)
            return mt_fail(err, MT_E_INVALID, "%s", kinds[i].sentence);
    wrong = find_wrong(bytes, len);
    return wrong == len || mt_fail(err, MT_E_INVALID,
                                   "the file is no text: at byte %zu it is not UTF-8, or has a control character: send "
                                   "plain text, Markdown, CSV, code or HTML",
                                   wrong);
}
