/* The inside of the parsers, for src/chat/parse*.c, format*.c and shape*.c only.

   A format is a table of states. A state says what becomes of bytes (mt_parse_does) and which markers lead to which
   state. The parser reads one byte at a time and holds back only what may be the beginning of a marker, so the result
   cannot depend on how the text was cut. Two tables run in a row: what is content to the reasoning table is the input
   of the tool table. */
#ifndef MT_CHAT_PARSE_CORE_H
#define MT_CHAT_PARSE_CORE_H

#include <stdint.h>

#include "base/buf.h"
#include "chat/parse.h"
#include "constraint/limits.h"

/* What becomes of a byte in a state. */
typedef enum mt_parse_does {
    MT_DOES_CONTENT,   /* it is content */
    MT_DOES_REASONING, /* it is reasoning */
    MT_DOES_LEAD,      /* white space is content; any other byte is read again in the state `other` */
    MT_DOES_SKIP,      /* white space is dropped; any other byte is read again in the state `other` */
    MT_DOES_DROP,      /* it is dropped */
    MT_DOES_NAME,      /* part of the name of a call */
    MT_DOES_ID,        /* part of the call's id */
    MT_DOES_KEY,       /* part of an argument's name */
    MT_DOES_VALUE,     /* part of its value, whose type the tool's schema tells */
    MT_DOES_STRING,    /* part of its value, a string */
    MT_DOES_CLOSED,    /* white space after the end marker of a value; any other byte shows that it was no end */
    MT_DOES_HEADER,    /* part of a header, which table->route interprets */
    MT_DOES_CALLS,     /* of JSON: a call or a list of calls; at its end, on to `done` */
    MT_DOES_ARGUMENTS, /* of JSON: the arguments of a call; at their end, on to `done` */
    MT_DOES_PYTHON,    /* of Python: a list of calls; at its end, on to `done` */
    MT_DOES_OBJECT,    /* of Gemma's notation of arguments; at their end, on to `done` */
    MT_DOES_QUOTED     /* of a string in Gemma's notation */
} mt_parse_does;

/* Flags of a rule. */
#define MT_PARSE_KEEP 1u   /* the marker is also read again as text in the next state */
#define MT_PARSE_HOLD 2u   /* the marker becomes content where no call follows */
#define MT_PARSE_BEGIN 4u  /* the name is complete: the call begins */
#define MT_PARSE_END 8u    /* the call ends */
#define MT_PARSE_ROUTE 16u /* the header is complete: table->route chooses the next state, not the rule */

/* Flags of a state. */
#define MT_PARSE_DECLARED 1u /* it is a call only where the tool is declared */
#define MT_PARSE_WORD 2u     /* the header is one word */
#define MT_PARSE_LINES 4u    /* a line break at each end of a value does not belong to it */

#define MT_PARSE_RULES 8   /* most rules of a state */
#define MT_PARSE_MARKER 64 /* more than the bytes of any marker */

typedef struct mt_parse_rule {
    const char *marker;  /* no marker of a state begins with another one */
    uint8_t next, flags; /* next: a state */
} mt_parse_rule;

typedef struct mt_parse_state {
    mt_parse_does does;
    uint8_t done, other, flags; /* done, other: states, see mt_parse_does */
    mt_parse_rule rules[MT_PARSE_RULES];
} mt_parse_state;

/* Where a header leads. */
typedef enum mt_parse_route {
    MT_ROUTE_CONTENT,
    MT_ROUTE_REASONING,
    MT_ROUTE_CALL,
    MT_ROUTE_REJECT, /* it is no header: it becomes content */
    MT_ROUTES
} mt_parse_route;

/* The table of a format. The uint8_t are states. */
typedef struct mt_parse_table {
    const mt_parse_state *states;
    uint8_t start;
    uint8_t opened; /* the first state where the prompt has opened reasoning; 0: start */
    uint8_t answer; /* the first state where the prompt has closed reasoning; 0: start */
    bool framed;    /* the text has headers even where no tools are declared */
    mt_parse_route (*route)(mt_parser *p, const char *header, const mt_parse_state *state);
    uint8_t routes[MT_ROUTES];   /* the state for each mt_parse_route */
    void (*named)(mt_parser *p); /* splits what the model wrote as the name into p->name and p->id; may be NULL */
    const char *breaks;          /* a marker of calls that ends reasoning, too; NULL: none */
} mt_parse_table;

/* A table while it runs. */
typedef struct mt_parse_machine {
    const mt_parse_table *table; /* NULL: all text is content */
    uint8_t state;
    char pending[MT_PARSE_MARKER]; /* text that may be the beginning of a marker */
    size_t len;                    /* bytes in pending */
} mt_parse_machine;

/* A short text, bounded. */
typedef struct mt_parse_word {
    char text[MT_LIMIT_PARSE_NAME + 1]; /* NUL-terminated */
    size_t len;
} mt_parse_word;

/* Where the parser is in calls written as JSON: see parse_json.c. */
typedef struct mt_parse_json {
    uint8_t phase, field; /* enum phase and enum field of parse_json.c */
    bool string, escape;  /* within a string; after its backslash */
    bool list;            /* within a list of calls */
    uint32_t depth;       /* open containers within the present value */
    uint64_t lists;       /* a bit for each of the outer 64 containers: it is a list, not an object */
    uint32_t levels;      /* open objects of the call itself */
} mt_parse_json;

/* Where the parser is in calls written as Python: see parse_python.c. */
typedef struct mt_parse_python {
    uint8_t phase;       /* enum phase of parse_python.c */
    char quote;          /* of the present string; 0: outside of strings */
    bool opening;        /* the string has only quotes so far: it may be empty, or begin with three */
    bool triple, escape; /* triple: it has three quotes; escape: after a backslash */
    uint8_t run;         /* number of quotes in a row */
    bool closed;         /* the argument ends with a string so far */
    bool list;           /* within a list of calls */
    uint32_t depth;      /* open brackets within the argument */
    size_t position;     /* number of arguments so far that had no name */
} mt_parse_python;

/* Where the parser is in Gemma's notation: see parse_gemma.c. */
typedef struct mt_parse_object {
    uint64_t objects; /* a bit for each level: an object, not a list */
    uint32_t depth;   /* levels */
    bool key, comma;  /* a key is expected; a comma is due before the next item */
} mt_parse_object;

/* A parser. Plain data except the two buffers, so that it can be copied. */
struct mt_parser {
    mt_parse_machine machines[2]; /* [0] for reasoning, [1] for calls */
    const json_t *tools;
    bool reasons; /* reasoning is separated from content */

    mt_parse_kind text_kind; /* of the latest text event */
    bool lead;               /* only white space came so far: it is dropped */
    char space[64];          /* white space that is dropped if a block or the text ends after it */
    size_t space_len;

    mt_parse_fn *fn; /* the caller's callback */
    void *ctx;
    mt_parse_kind out_kind; /* of the text in out */
    char out[512];          /* events are sent in pieces of this size, not byte by byte */
    size_t out_len;

    size_t calls;                /* how many have begun */
    bool open;                   /* within a call */
    bool begun_arguments;        /* an ARGUMENTS event was sent for the call */
    bool listed;                 /* arguments in tags: one was written, so the next needs a comma */
    const json_t *schema;        /* of the call's parameters; NULL: not known */
    mt_parse_word name, id, key; /* of the call; key: of the present argument */

    bool streaming;         /* the value is sent as it comes: its opening quote was sent */
    bool started;           /* a byte of the value was read */
    bool line;              /* its last byte is a line break, which belongs to the format unless more follows */
    char gap[64];           /* bytes from the end marker of a value on, in case it was no end */
    size_t gap_len;         /* 0: within the value */
    mt_buf held;            /* a value, a header, or arguments of a call without a name yet */
    mt_buf raw;             /* text that becomes content if it turns out to be no call */
    bool collecting;        /* bytes are added to raw */
    mt_parse_json json;     /* for CALLS and ARGUMENTS */
    mt_parse_python py;     /* for PYTHON */
    mt_parse_object object; /* for OBJECT and QUOTED */
};

/* parse_core.c: reads a byte; the end of the text */
void mt_parse_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_end(mt_parser *p, mt_parse_machine *m);

/* parse_state.c: changes of state */
const mt_parse_state *mt_parse_state_of(const mt_parse_machine *m);
void mt_parse_go(mt_parser *p, mt_parse_machine *m, uint8_t state); /* enters a state */
void mt_parse_again(mt_parse_machine *m, char b);                   /* b is read again, in the present state */
void mt_parse_collect_begin(mt_parser *p);                          /* from here on text may turn out to be no call */
bool mt_parse_collect(mt_parser *p, mt_parse_machine *m, char b);   /* false: too much was collected, and rejected */
void mt_parse_reject(mt_parser *p, mt_parse_machine *m); /* it is no call: what was collected becomes content */

/* parse_out.c: sends events */
void mt_parse_flush(mt_parser *p, bool all);
void mt_parse_text_begin(mt_parser *p, mt_parse_kind kind); /* text of that kind follows, or none */
void mt_parse_text(mt_parser *p, mt_parse_kind kind, const char *text, size_t len);
void mt_parse_text_end(mt_parser *p); /* sends what is held back */
void mt_parse_call_begin(mt_parser *p);
void mt_parse_call_arguments(mt_parser *p, const char *text, size_t len);
void mt_parse_call_end(mt_parser *p, bool complete);

/* parse_word.c */
void mt_parse_word_clear(mt_parse_word *word);
bool mt_parse_word_add(mt_parse_word *word, char b); /* false: it is full */
void mt_parse_word_set(mt_parse_word *word, const char *text, size_t len);
/* The tool's declaration; NULL: it is not declared */
const json_t *mt_parse_tool(const mt_parser *p, const char *name);

/* parse_value.c: arguments in tags, written as JSON. string: the format says that the value is one; lines: as
   MT_PARSE_LINES */
void mt_parse_key(mt_parser *p); /* writes p->key as the next argument's name */
void mt_parse_value_begin(mt_parser *p, bool string);
void mt_parse_value_byte(mt_parser *p, char b, bool lines);
void mt_parse_value_end(mt_parser *p);
void mt_parse_retype(mt_parser *p, mt_buf *json); /* converts the value of p->key to the type its schema wants */
/* What a $ref to any place of root names, by a JSON pointer; NULL is fine. Other schemas are returned as they are. */
const json_t *mt_parse_resolve(const json_t *schema, const json_t *root);
bool mt_parse_no_string(const json_t *schema, const json_t *root); /* whether no value of the schema is a string */

/* Of values that are written as text: whether a text is read as a string; appends a regular expression that matches all
   texts that are not, and perhaps others, or returns false where all are; out may be NULL. */
bool mt_parse_reads_string(const char *text, size_t len, const json_t *schema, const json_t *root);
bool mt_parse_others(mt_buf *out, const json_t *schema, const json_t *root);

/* parse_json.c */
void mt_parse_calls_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_arguments_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_arguments_leave(mt_parser *p);

/* parse_python.c, parse_literal.c */
void mt_parse_python_byte(mt_parser *p, mt_parse_machine *m, char b);
bool mt_parse_literal(mt_buf *out, const char *text, size_t len); /* a Python literal as JSON; false: it is none */

/* parse_gemma.c */
void mt_parse_object_byte(mt_parser *p, mt_parse_machine *m, char b);
void mt_parse_quoted(mt_parser *p, bool begins);

/* Empties `held`, also after it was full. */
static inline void mt_parse_held_clear(mt_parser *p)
{
    p->held.len = 0;
    p->held.full = false;
}

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
