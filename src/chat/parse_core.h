/* The inside of the parsers: for src/chat/parse*.c only.

   A format is a table of states. A state says what becomes of bytes (mt_parse_does) and which markers lead to which
   state. The core reads one byte at a time and holds back only what may be the beginning of a marker, so a parse cannot
   depend on how the text was cut. Two tables run one behind the other: the reasoning format's content is the text of
   the tool format. */
#ifndef MT_CHAT_PARSE_CORE_H
#define MT_CHAT_PARSE_CORE_H

#include <stdint.h>

#include "base/buf.h"
#include "chat/parse.h"

typedef enum mt_parse_does {
    MT_DOES_CONTENT,   /* is content */
    MT_DOES_REASONING, /* is reasoning */
    MT_DOES_LEAD,      /* white space is content; anything else goes on in `other` */
    MT_DOES_SKIP,      /* white space is dropped; anything else goes on in `other` */
    MT_DOES_DROP,      /* is dropped */
    MT_DOES_NAME,      /* the name of a call */
    MT_DOES_ID,        /* its id */
    MT_DOES_KEY,       /* the name of an argument */
    MT_DOES_VALUE,     /* its value, typed by the tool's schema */
    MT_DOES_STRING,    /* its value, a string */
    MT_DOES_CLOSED,    /* white space behind the end of a value; anything else says that it was not the end */
    MT_DOES_HEADER,    /* a header that table->route reads */
    MT_DOES_CALLS,     /* JSON: a call or a list of calls, then `done` */
    MT_DOES_ARGUMENTS, /* JSON: the arguments of a call, then `done` */
    MT_DOES_PYTHON,    /* Python: a list of calls, then `done` */
    MT_DOES_OBJECT,    /* Gemma's notation of arguments, then `done` */
    MT_DOES_QUOTED     /* a string in it */
} mt_parse_does;

/* of a rule */
#define MT_PARSE_KEEP 1u   /* the marker is also the first text of the next state */
#define MT_PARSE_HOLD 2u   /* the marker is given back as content where no call follows */
#define MT_PARSE_BEGIN 4u  /* the name is known: a call begins */
#define MT_PARSE_END 8u    /* the call ends */
#define MT_PARSE_ROUTE 16u /* the header is whole: where it leads is in it, not in the rule */

/* of a state */
#define MT_PARSE_DECLARED 1u /* only a declared tool makes this a call */
#define MT_PARSE_WORD 2u     /* a header is one word */
#define MT_PARSE_LINES 4u    /* a line break at both ends of a value is not of the value */

#define MT_PARSE_RULES 8
#define MT_PARSE_MARKER 64 /* bytes of the longest marker, and some */

typedef struct mt_parse_rule {
    const char *marker; /* none is the beginning of another one in the same state */
    uint8_t next, flags;
} mt_parse_rule;

typedef struct mt_parse_state {
    mt_parse_does does;
    uint8_t done, other, flags;
    mt_parse_rule rules[MT_PARSE_RULES];
} mt_parse_state;

typedef enum mt_parse_route {
    MT_ROUTE_CONTENT,
    MT_ROUTE_REASONING,
    MT_ROUTE_CALL,
    MT_ROUTE_REJECT, /* the header is content */
    MT_ROUTES
} mt_parse_route;

typedef struct mt_parse_table {
    const mt_parse_state *states;
    uint8_t start;
    uint8_t opened; /* where the prompt has opened reasoning */
    uint8_t answer; /* where the prompt has closed it */
    bool framed;    /* the text has headers even where no tools are declared */
    mt_parse_route (*route)(mt_parser *p, const char *header, const mt_parse_state *state);
    uint8_t routes[MT_ROUTES];
    void (*named)(mt_parser *p); /* makes name and id of what stood for the name */
    const char *breaks;          /* a marker of calls that also ends reasoning */
} mt_parse_table;

typedef struct mt_parse_machine {
    const mt_parse_table *table; /* NULL: there is none, and text is content */
    uint8_t state;
    char pending[MT_PARSE_MARKER]; /* text that may become a marker */
    size_t len;
} mt_parse_machine;

typedef struct mt_parse_word {
    char text[MT_LIMIT_PARSE_NAME + 1]; /* NUL-terminated */
    size_t len;
} mt_parse_word;

/* Where in a JSON text. */
typedef struct mt_parse_json {
    uint8_t phase, field;
    bool string, escape;
    bool list;
    uint32_t depth;  /* of containers within the value at hand */
    uint64_t lists;  /* a bit each for the outer ones: a list, not an object */
    uint32_t levels; /* of objects of the call */
} mt_parse_json;

typedef struct mt_parse_python {
    uint8_t phase;
    char quote;   /* of the string at hand, or 0 */
    bool opening; /* it may still be the empty string, or one of three quotes */
    bool triple, escape;
    uint8_t run; /* quotes in a row */
    bool closed; /* a string stands at the end of the argument so far */
    bool list;
    uint32_t depth;
    size_t position; /* arguments without a name */
} mt_parse_python;

typedef struct mt_parse_object {
    uint64_t objects; /* a bit a level: an object, not a list */
    uint32_t depth;
    bool key, comma, quoted;
} mt_parse_object;

/* Plain data but for the two buffers, so that it can be copied. */
struct mt_parser {
    mt_parse_machine machines[2]; /* reasoning, tools */
    const json_t *tools;
    bool reasons; /* reasoning is told apart from content */

    mt_parse_kind text_kind; /* of the text told last */
    bool lead;               /* nothing but white space was told of it: that is dropped */
    char space[64];          /* white space that is dropped where a block or the text ends */
    size_t space_len;

    mt_parse_fn *fn;
    void *ctx;
    mt_parse_kind out_kind;
    char out[512]; /* events are told in pieces of this, not byte by byte */
    size_t out_len;

    size_t calls; /* begun */
    bool open;    /* within a call */
    bool begun_arguments, listed;
    const json_t *schema; /* of the call's parameters, or NULL */
    mt_parse_word name, id, key;

    bool streaming;         /* a value that is told as it comes: its opening quote was told */
    bool started;           /* a byte of the value was seen */
    bool line;              /* its last byte is a line break that may be the format's */
    char gap[64];           /* what stood behind the end of a value, that end included */
    size_t gap_len;         /* 0: the value goes on */
    mt_buf held;            /* a value, a header, arguments whose call has no name yet */
    mt_buf raw;             /* text that is content when it turns out to be no call */
    bool collecting;        /* into raw */
    mt_parse_json json;     /* of CALLS and ARGUMENTS */
    mt_parse_python py;     /* of PYTHON */
    mt_parse_object object; /* of OBJECT and QUOTED */
};

/* parse_core.c */
void mt_parse_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_end(mt_parser *p, mt_parse_machine *m); /* the text has ended */

/* parse_state.c */
const mt_parse_state *mt_parse_state_of(const mt_parse_machine *m);
void mt_parse_go(mt_parser *p, mt_parse_machine *m, uint8_t state); /* to another state */
void mt_parse_again(mt_parse_machine *m, char b);                   /* b is read again, in the state it is now in */
void mt_parse_collect_begin(mt_parser *p);                          /* what may turn out to be no call */
bool mt_parse_collect(mt_parser *p, mt_parse_machine *m, char b);   /* false when it became too much: rejected */
void mt_parse_reject(mt_parser *p, mt_parse_machine *m);            /* no call: what was collected is content */

/* parse_out.c */
void mt_parse_flush(mt_parser *p, bool all);
void mt_parse_text(mt_parser *p, mt_parse_kind kind, const char *text, size_t len);
void mt_parse_text_end(mt_parser *p); /* tells what is held back */
void mt_parse_call_begin(mt_parser *p);
void mt_parse_call_arguments(mt_parser *p, const char *text, size_t len);
void mt_parse_call_end(mt_parser *p, bool complete);

/* parse_word.c */
void mt_parse_word_clear(mt_parse_word *word);
bool mt_parse_word_add(mt_parse_word *word, char b); /* false when it is full */
void mt_parse_word_set(mt_parse_word *word, const char *text, size_t len);
const json_t *mt_parse_tool(const mt_parser *p, const char *name); /* its declaration, or NULL */

/* parse_value.c */
void mt_parse_key(mt_parser *p); /* tells p->key as the next argument's */
void mt_parse_value_begin(mt_parser *p, bool string);
void mt_parse_value_byte(mt_parser *p, char b, bool lines);
void mt_parse_value_end(mt_parser *p, bool lines);
void mt_parse_retype(mt_parser *p, mt_buf *json); /* the value of p->key, as its type wants it */

/* parse_json.c */
void mt_parse_calls_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_arguments_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_arguments_leave(mt_parser *p);

/* parse_python.c, parse_literal.c */
void mt_parse_python_byte(mt_parser *p, mt_parse_machine *m, char b);
bool mt_parse_literal(mt_buf *out, const char *text, size_t len); /* a Python literal as JSON; false when it is none */

/* parse_gemma.c */
void mt_parse_object_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_quoted(mt_parser *p, bool begins);

static inline bool mt_parse_space(char b)
{
    return b == ' ' || b == '\n' || b == '\r' || b == '\t';
}

static inline bool mt_parse_letter(char b)
{
    return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_';
}

static inline bool mt_parse_name_byte(char b)
{
    return mt_parse_letter(b) || (b >= '0' && b <= '9') || b == '.' || b == '-';
}

#endif
