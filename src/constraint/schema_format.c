/* Regular expressions for string formats. Every text that is written has its format; a format may have more texts than
   are written. Unknown names are annotations. */
#include <string.h>

#include "base/compiler.h"
#include "constraint/schema_inside.h"

/* A name within a host name: LABEL of at most 22 characters, WORD of any number. */
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,20}[A-Za-z0-9])?"
#define WORD "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
#define HOST LABEL "(?:\\." LABEL "){0,4}"
#define HEX4 "[0-9a-fA-F]{1,4}"
/* 0 to 255; a date with a leap day only in leap years; the two halves of a duration. */
#define BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define DATE                                                                                              \
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|" \
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
#define TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define DAYS "(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|[0-9]{1,4}D)"
#define HOURS "T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}S)"
#define PATH "[A-Za-z0-9._~!$&'()*+,;=:@/-]*"
#define LOCAL "[A-Za-z0-9_+-]"
#define URI(host) "https?://" host "(?::[1-9][0-9]{0,3})?(?:/" PATH ")?(?:\\?" PATH ")?"
/* Narrower than URI, as "url" is commonly checked: a host ends with a top-level domain, a port has two digits or more,
   and a query needs a path before it. */
#define URL(label) "https?://(?:" label "\\.){1,4}[A-Za-z]{2,12}(?::[1-9][0-9]{1,3})?(?:/" PATH "(?:\\?" PATH ")?)?"
#define POINTER "(?:/(?:[^~/\\u0000-\\u001f\"]|~[01])*)*"

/* String formats, as regular expressions. short_texts is for strings whose characters are counted in any case: names in
   it have any length, so that it needs fewer states beside the count. Its texts are of the format where they have at
   most `most` characters. NULL: regex is used there, too. */
static const struct {
    const char *name, *regex, *short_texts;
    uint32_t most;
} formats[] = {
    {"date", "^" DATE "$", NULL, 0},
    {"time", "^" TIME "$", NULL, 0},
    {"date-time", "^" DATE "T" TIME "$", NULL, 0},
    {"duration", "^P(?:[0-9]{1,4}W|" DAYS "(?:" HOURS ")?|" HOURS ")$", NULL, 0},
    {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", NULL, 0},
    {"email", "^" LOCAL "{1,32}(?:\\." LOCAL "{1,16}){0,2}@(?:" LABEL "\\.){1,3}[A-Za-z]{2,12}$",
     "^" LOCAL "+(?:\\." LOCAL "+)*@(?:" WORD "\\.)+[A-Za-z]{2,12}$", 63},
    {"idn-email", "^" LOCAL "{1,32}(?:\\." LOCAL "{1,16}){0,2}@(?:" LABEL "\\.){1,3}[A-Za-z]{2,12}$",
     "^" LOCAL "+(?:\\." LOCAL "+)*@(?:" WORD "\\.)+[A-Za-z]{2,12}$", 63},
    {"hostname", "^" HOST "$", "^" WORD "(?:\\." WORD ")*$", 63},
    {"idn-hostname", "^" HOST "$", "^" WORD "(?:\\." WORD ")*$", 63},
    {"ipv4", "^" BYTE "(?:\\." BYTE "){3}$", NULL, 0},
    {"ipv6", "^(?:(?:" HEX4 ":){7}" HEX4 "|(?:" HEX4 ":){1,7}:|:(?::" HEX4 "){1,7}|(?:" HEX4 ":){1,6}:" HEX4 ")$", NULL,
     0},
    {"uri", "^" URI(HOST) "$", "^" URI(WORD "(?:\\." WORD ")*") "$", 255},
    {"url", "^" URL("[A-Za-z0-9]{1,22}") "$", "^" URL("[A-Za-z0-9]+") "$", 255},
    {"iri", "^" URI(HOST) "$", "^" URI(WORD "(?:\\." WORD ")*") "$", 255},
    {"uri-reference", "^(?:" URI(HOST) "|/?[A-Za-z0-9._~-][A-Za-z0-9._~/-]*(?:\\?" PATH ")?(?:#" PATH ")?)$", NULL, 0},
    {"iri-reference", "^(?:" URI(HOST) "|/?[A-Za-z0-9._~-][A-Za-z0-9._~/-]*(?:\\?" PATH ")?(?:#" PATH ")?)$", NULL, 0},
    {"uri-template", "^(?:" URI(HOST) "|[A-Za-z0-9._~/?=&:-]*(?:\\{[A-Za-z0-9_]+\\}[A-Za-z0-9._~/?=&:-]*)*)$", NULL, 0},
    {"json-pointer", "^" POINTER "$", NULL, 0},
    {"relative-json-pointer", "^(?:0|[1-9][0-9]{0,3})(?:#|" POINTER ")$", NULL, 0},
    {"byte", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$", NULL, 0},
    {"regex", "^[^\\\\()\\[\\]{}*+?|^$\\u0000-\\u001f]*$", NULL, 0},
};

/* Expressions that all texts of a format match, and others too. They are for "not": what they do not match is surely
   not of the format. */
static const struct {
    const char *name, *regex;
} wide_formats[] = {
    {"date", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    {"time", "^[0-9]{2}:[0-9]{2}"},
    {"date-time", "^[0-9]{4}-[0-9]{2}-[0-9]{2}[^0-9]"},
    {"duration", "^[Pp]"},
    {"uuid", "^(?:[Uu][Rr][Nn]:[^:]*:)?[0-9a-fA-F]{8}-[0-9a-fA-F-]*$"},
    {"email", "@"},
    {"idn-email", "@"},
    {"hostname", "^[A-Za-z0-9._-]*$"},
    {"ipv4", "^[0-9.]*$"},
    {"ipv6", ":.*:"},
    {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:"},
    {"url", "^[A-Za-z][A-Za-z0-9+.-]*:"},
    {"iri", "^[A-Za-z][A-Za-z0-9+.-]*:"},
};

const char *mt_schema_format_wide(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(wide_formats); i++)
        if (strcmp(wide_formats[i].name, name) == 0)
            return wide_formats[i].regex;
    return NULL;
}

const char *mt_schema_format(const char *name, const char **short_texts, uint32_t *most)
{
    for (size_t i = 0; i < MT_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) {
            *short_texts = formats[i].short_texts;
            *most = formats[i].most;
            return formats[i].regex;
        }
    return NULL;
}

/* Number formats, with their bounds. */
static const struct {
    const char *name, *low, *high;
} number_formats[] = {
    {"int8", "-128", "127"},
    {"int16", "-32768", "32767"},
    {"int32", "-2147483648", "2147483647"},
    {"int64", "-9223372036854775808", "9223372036854775807"},
    {"uint8", "0", "255"},
    {"uint16", "0", "65535"},
    {"uint32", "0", "4294967295"},
    {"uint64", "0", "18446744073709551615"},
};

bool mt_schema_number_format(const char *name, const char **low, const char **high)
{
    for (size_t i = 0; i < MT_COUNT(number_formats); i++)
        if (strcmp(number_formats[i].name, name) == 0) {
            *low = number_formats[i].low;
            *high = number_formats[i].high;
            return true;
        }
    return false;
}
