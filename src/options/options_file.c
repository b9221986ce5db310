/* The lines of a config file:

       # a comment has a line of its own
       port = 8000
       any-model                     a flag may stand alone, or be yes or no
       alias = one                   an option that is a list may stand several times
       host = "unix:/run/m o t.sock" in quotes, anything is a value; \" and \\ stand for " and \

   What might be meant in two ways is an error. */
#include <string.h>

#include "options/options_table.h"

static const char blanks[] = " \t\r\v\f";

/* Cuts the first line off the rest of the file and returns it without blanks around it. */
static char *cut_line(mt_option_file *file)
{
    char *line = file->at, *end = line + strcspn(line, "\n");

    file->at = end + (*end != '\0');
    file->number++;
    line += strspn(line, blanks);
    while (end > line && strchr(blanks, end[-1]))
        end--;
    *end = '\0';
    return line;
}

/* Removes the quotes around a value, in place: *text is moved from the opening quote to what is inside. False: *err. */
static bool unquote(char **text, mt_error *err)
{
    char *from = ++*text, *to = from;

    for (; *from != '"'; from++) {
        if (*from == '\\' && from[1] != '"' && from[1] != '\\')
            return mt_fail(err, MT_E_INVALID, "only \\\" and \\\\ may follow \"\\\" in quotes: write \\\\ for one");
        from += *from == '\\';
        if (*from == '\0')
            return mt_fail(err, MT_E_INVALID, "a quote is not closed: end the value with \"");
        *to++ = *from;
    }
    if (from[1] != '\0')
        return mt_fail(err, MT_E_INVALID, "\"%s\" stands behind the closing quote: take it away", from + 1);
    *to = '\0';
    return true;
}

/* Refuses values without quotes that might be meant in another way. */
static bool check_plain(const char *value, mt_error *err)
{
    for (const char *p = strchr(value, '#'); p; p = strchr(p + 1, '#'))
        if (p > value && strchr(blanks, p[-1]))
            return mt_fail(err, MT_E_INVALID,
                           "\"%s\" may be a comment: give it a line of its own, or put the value in quotes", p);
    if (value[0] == '~')
        return mt_fail(err, MT_E_INVALID, "\"%s\" begins with ~, which only shells understand: write the whole path",
                       value);
    return true;
}

/* Splits a line into name and value, in place. */
static bool split(char *text, mt_option_line *line, mt_error *err)
{
    char *end = text + strcspn(text, " \t\r\v\f="), *value = end + strspn(end, blanks);

    *line = (mt_option_line){.name = text, .number = line->number};
    if (*value == '\0')
        return true;
    if (*value != '=' || end == text)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is no setting: write name = value", text);
    *end = '\0';
    value++;
    value += strspn(value, blanks);
    line->value = value;
    if (*value == '\0')
        return mt_fail(err, MT_E_INVALID, "\"%s\" has no value: write one, or \"\" for an empty one", line->name);
    return *value == '"' ? unquote(&line->value, err) : check_plain(value, err);
}

bool mt_option_file_next(mt_option_file *file, mt_option_line *line, mt_error *err)
{
    mt_error_clear(err);
    while (*file->at) {
        char *text = cut_line(file);

        line->number = file->number;
        if (*text != '\0' && *text != '#')
            return split(text, line, err);
    }
    return false;
}
