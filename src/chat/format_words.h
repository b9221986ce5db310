/* Short names for writing tables of states (parse_core.h) in the files format_*.c. A table has one row for each state:
   what becomes of text (CONTENT, SKIP, NAMED, ...) and rules {marker, next state, flags}. */
#ifndef MT_CHAT_FORMAT_WORDS_H
#define MT_CHAT_FORMAT_WORDS_H

#include "chat/format.h"

/* Flags of rules. */
#define KEEP MT_PARSE_KEEP
#define HOLD MT_PARSE_HOLD
#define BEGIN MT_PARSE_BEGIN
#define END MT_PARSE_END
#define ROUTE MT_PARSE_ROUTE

/* A marker that stands alone in the text and is dropped. */
#define STRAY(marker)   \
    {                   \
        marker, TEXT, 0 \
    }

/* Rows of a table, named after what becomes of text in that state (mt_parse_does). to: the state that follows. */
#define CONTENT(...)                                      \
    {                                                     \
        .does = MT_DOES_CONTENT, .rules = { __VA_ARGS__ } \
    }
#define REASONING(...)                                      \
    {                                                       \
        .does = MT_DOES_REASONING, .rules = { __VA_ARGS__ } \
    }
#define DROP(...)                                      \
    {                                                  \
        .does = MT_DOES_DROP, .rules = { __VA_ARGS__ } \
    }
#define LEAD(to, ...)                                               \
    {                                                               \
        .does = MT_DOES_LEAD, .other = to, .rules = { __VA_ARGS__ } \
    }
#define SKIP(to, ...)                                               \
    {                                                               \
        .does = MT_DOES_SKIP, .other = to, .rules = { __VA_ARGS__ } \
    }
#define NAMED(to, ...)                                              \
    {                                                               \
        .does = MT_DOES_NAME, .other = to, .rules = { __VA_ARGS__ } \
    }
#define KEYED(...)                                    \
    {                                                 \
        .does = MT_DOES_KEY, .rules = { __VA_ARGS__ } \
    }
#define HEADER(to, how, ...)                                                        \
    {                                                                               \
        .does = MT_DOES_HEADER, .other = to, .flags = how, .rules = { __VA_ARGS__ } \
    }
#define CALLS(to, how, ...)                                                                      \
    {                                                                                            \
        .does = MT_DOES_CALLS, .done = to, .other = TEXT, .flags = how, .rules = { __VA_ARGS__ } \
    }
#define PYTHON(to, how, ...)                                                                      \
    {                                                                                             \
        .does = MT_DOES_PYTHON, .done = to, .other = TEXT, .flags = how, .rules = { __VA_ARGS__ } \
    }
#define ARGUMENTS(to, ...)                                              \
    {                                                                   \
        .does = MT_DOES_ARGUMENTS, .done = to, .rules = { __VA_ARGS__ } \
    }

/* States that tables have in common; a table has those that it names. */
enum {
    TEXT,  /* content, in which calls are looked for */
    START, /* the beginning of the answer */
    OPEN,  /* after the marker that begins a block of calls */
    CALL,  /* after the marker that begins a call */
    NAME,
    ID,
    BETWEEN, /* between arguments, or between name and arguments */
    KEY,
    VALUE,
    STRING,
    CLOSED,
    ARGS,
    AFTER, /* after a call */
    MORE   /* the first number for a table's own states */
};

#endif
