/* A format: how a model writes tool calls or reasoning. It has the words by which a template with this format is
   recognised, a table to parse the model's text, and a layout to generate calls where an answer must have some. To add
   one, define it by FORMAT in a file format_*.c and add its name to formats.def. */
#ifndef MT_CHAT_FORMAT_H
#define MT_CHAT_FORMAT_H

#include "chat/parse_core.h"
#include "constraint/json.h"

/* How an argument is written in tags. */
typedef struct mt_layout_tags {
    const char *open, *opened; /* before and after its name */
    const char *string;        /* between name and value, where the value is a string */
    const char *other;         /* the same for other values */
    const char *close;         /* after the value */
} mt_layout_tags;

/* How calls are written where the answer must have some: one of the ways that the parser accepts. A text that is NULL
   is left out. */
typedef struct mt_layout {
    const char *content; /* how the answer begins where it is content and not a call */
    /* A special token that the model must have, else the next layout of the format is used; NULL: none */
    const char *needs;
    const char *trigger;         /* begins the first call, or (each) every call */
    bool each;                   /* the trigger begins every call */
    bool last;                   /* nothing may follow the last call */
    const char *open;            /* after a trigger that is only before the first call */
    const char *before, *behind; /* before and after the name */
    const char *number_first;    /* after the number of the call, which stands before the name; NULL: none does */
    const char *number_last;     /* the same behind the name */
    /* After a call; between two calls (NULL: there can be only one); after the last */
    const char *after, *between, *close;
    const mt_layout_tags *tags; /* each argument is written in these; NULL: all are an object, or keywords */
    bool keywords;              /* arguments are Python's keyword arguments */
    mt_notation notation;       /* of the values */
} mt_layout;

typedef struct mt_format {
    const char *name;
    /* A template has the format if it has all words of one row; a word of NULL is none, and so is a row of them. No
       rows: the format is never recognised, only chosen by name */
    const char *signs[2][2];
    const mt_parse_table *read; /* parses the model's text; NULL: all is content */
    const mt_layout *write;     /* ends with an element that needs nothing; NULL: calls cannot be required */
} mt_format;

/* Formats of tool calls, listed in formats.def. */
#define X(name) extern const mt_format mt_format_##name;
#include "chat/formats.def"
#undef X

/* Formats of reasoning; more special ones come first. */
extern const mt_format mt_format_reasoning[];
extern const size_t mt_format_reasoning_count;

extern const mt_parse_table mt_parse_harmony; /* a format of both calls and reasoning */

/* The format of that name; NULL: unknown. A name of NULL is "none". */
const mt_format *mt_format_find_tools(const char *name);
const mt_format *mt_format_find_reasoning(const char *name);

/* The markers around reasoning, taken from the parser's table. False: the format, which may be NULL, has none, or marks
   reasoning by headers. */
bool mt_format_markers(const mt_format *reasoning, const char **open, const char **close);

#endif
