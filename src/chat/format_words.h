/* Words to write tables of states with: for format_*.c. */
#ifndef MT_CHAT_FORMAT_WORDS_H
#define MT_CHAT_FORMAT_WORDS_H

#include "chat/format.h"

#define KEEP MT_PARSE_KEEP
#define HOLD MT_PARSE_HOLD
#define BEGIN MT_PARSE_BEGIN
#define END MT_PARSE_END
#define ROUTE MT_PARSE_ROUTE

#define STRAY(marker)   \
    {                   \
        marker, TEXT, 0 \
    } /* stands in the text alone, and is dropped */

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

/* The states every table may have; a table has those that it names. */
enum {
    TEXT,  /* content, calls are looked for */
    START, /* the beginning of the answer */
    OPEN,  /* behind the marker that begins a block of calls */
    CALL,  /* behind one that begins a call */
    NAME,
    ID,
    BETWEEN, /* arguments, or name and arguments */
    KEY,
    VALUE,
    STRING,
    CLOSED,
    ARGS,
    AFTER, /* behind a call */
    MORE   /* of the table's own */
};

#endif
