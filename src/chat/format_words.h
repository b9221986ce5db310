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

/* A rule, for macros that make several; a marker that stands alone in the text and is dropped. */
#define RULE(marker, next, how) \
    {                           \
        marker, next, how       \
    }
#define STRAY(marker) RULE(marker, TEXT, 0)

/* A row of a table: what becomes of text in that state, the states `done` and `other`, flags, and rules. */
#define ROW(what, after, to, how, ...)                                                             \
    {                                                                                              \
        .does = MT_DOES_##what, .done = after, .other = to, .flags = how, .rules = { __VA_ARGS__ } \
    }

/* Rows, named after what becomes of text in that state (mt_parse_does). to: the state that follows. */
#define CONTENT(...) ROW(CONTENT, 0, 0, 0, __VA_ARGS__)
#define REASONING(...) ROW(REASONING, 0, 0, 0, __VA_ARGS__)
#define DROP(...) ROW(DROP, 0, 0, 0, __VA_ARGS__)
#define LEAD(to, ...) ROW(LEAD, 0, to, 0, __VA_ARGS__)
#define SKIP(to, ...) ROW(SKIP, 0, to, 0, __VA_ARGS__)
#define NAMED(to, ...) ROW(NAME, 0, to, 0, __VA_ARGS__)
#define KEYED(...) ROW(KEY, 0, 0, 0, __VA_ARGS__)
#define HEADER(to, how, ...) ROW(HEADER, 0, to, how, __VA_ARGS__)
#define CALLS(to, how, ...) ROW(CALLS, to, TEXT, how, __VA_ARGS__)
#define PYTHON(to, how, ...) ROW(PYTHON, to, TEXT, how, __VA_ARGS__)
#define ARGUMENTS(to, ...) ROW(ARGUMENTS, to, 0, 0, __VA_ARGS__)

/* Defines the format of calls that is called `id`: the table that reads it, the layouts that write it, its signs. */
#define FORMAT(id, reads, writes, ...) \
    const mt_format mt_format_##id = {.name = #id, .signs = {__VA_ARGS__}, .read = &reads, .write = writes}

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
