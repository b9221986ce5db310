/* A format of tool calls or of reasoning: by which words a template that has it is known, how a model's text in it is
   read, and how calls are written in it where an answer has to have some. A new one is a constant in one of the files
   named format_*.c, and its name in formats.def. */
#ifndef MT_CHAT_FORMAT_H
#define MT_CHAT_FORMAT_H

#include "chat/parse_core.h"
#include "sample/constraint/json.h"

typedef enum mt_layout_numbering {
    MT_LAYOUT_UNNUMBERED,
    MT_LAYOUT_NUMBER_FIRST, /* before the name */
    MT_LAYOUT_NUMBER_LAST
} mt_layout_numbering;

typedef enum mt_layout_arguments { MT_LAYOUT_OBJECT, MT_LAYOUT_TAGS, MT_LAYOUT_KEYWORDS } mt_layout_arguments;

typedef struct mt_layout_tags { /* how an argument is written */
    const char *open, *opened;  /* around its name */
    const char *string;         /* between that and the value, where it is a string, else other */
    const char *other;
    const char *close;
} mt_layout_tags;

/* One way to write calls of those that the parser reads. */
typedef struct mt_layout {
    const char *content; /* what content begins with where it is not a call; NULL: nothing */
    const char *needs;   /* a special token without which the next layout of the format is meant; NULL: none */
    const char *trigger; /* begins the first call, or each one */
    bool each;           /* each call begins with the trigger; else only the first, and `open` follows it once */
    bool last;           /* no content follows a call */
    const char *open;    /* behind a trigger that is not each call's; NULL here and below: nothing */
    const char *before, *behind;  /* around the name */
    mt_layout_numbering numbered; /* where a number stands, and then `numbered_end` */
    const char *numbered_end;
    const char *after, *between, *close; /* behind a call, between two (NULL: there is only one), behind the last */
    mt_layout_arguments arguments;
    const mt_layout_tags *tags; /* of TAGS */
    mt_notation notation;
} mt_layout;

typedef struct mt_format {
    const char *name;
    const char *signs[2][2];    /* a template has it that has all words of one of these */
    const mt_parse_table *read; /* NULL: text is content */
    const mt_layout *write;     /* NULL: calls cannot be asked for */
} mt_format;

/* Formats of calls: formats.def. */
#define X(name) extern const mt_format mt_format_##name;
#include "chat/formats.def"
#undef X

/* Formats of reasoning, the more special first. */
extern const mt_format mt_format_reasoning[];
extern const size_t mt_format_reasoning_count;

extern const mt_parse_table mt_parse_harmony; /* which is both */

/* NULL when the name is not known; without a name it is "none". */
const mt_format *mt_format_find_tools(const char *name);
const mt_format *mt_format_find_reasoning(const char *name);

#endif
