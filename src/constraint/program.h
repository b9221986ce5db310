/* A grammar compiled for matching: instructions of a machine that reads bytes, forks and calls. Constant once made, so
   any thread may read it. */
#ifndef MT_CONSTRAINT_PROGRAM_H
#define MT_CONSTRAINT_PROGRAM_H

#include "base/compiler.h"
#include "base/error.h"
#include "constraint/grammar.h"

typedef enum mt_op {
    MT_OP_RETURN, /* only instruction 0: the end of a rule, of a repetition's body, or of the text */
    MT_OP_BYTE,   /* a: index of the set */
    MT_OP_TEXT,   /* a: offset in text, b: number of bytes, at least 2 */
    MT_OP_TOKEN,  /* a: the id */
    MT_OP_CALL,   /* a: first instruction of the rule */
    MT_OP_REPEAT, /* a: first instruction of the body, b: least, c: most */
    MT_OP_FORK,   /* a: index in targets, b: number; next is not used */
    MT_OP_FREE    /* no operation; see mt_grammar_loose */
} mt_op;

typedef struct mt_instruction {
    uint8_t op;
    bool plain; /* set for a plain REPEAT, the FORK that an unlimited one becomes, and what reads first in its body */
    uint32_t a, b, c;
    uint32_t next;   /* the instruction that follows */
    uint32_t height; /* least number of stack frames that matching needs from here to the end of the rule */
} mt_instruction;

typedef struct mt_program {
    mt_instruction *code;
    size_t count;
    uint32_t *targets; /* of all forks */
    size_t target_count;
    uint32_t widest; /* most targets of a fork */
    uint16_t *text;  /* bytes; the last byte of a run has MT_TEXT_LAST, and behind it the two halves of its successor */
    size_t text_len;
    uint32_t start;   /* first instruction */
    mt_byteset *sets; /* the 256 sets of one byte come first */
    size_t set_count;
    uint8_t class_of[256]; /* bytes that no set distinguishes are one class */
    unsigned class_count;
    uint8_t class_byte[256];            /* one byte of each class */
    char left_out[MT_GRAMMAR_LEFT_OUT]; /* keywords that are not enforced, see mt_grammar_leave_out */
} mt_program;

/* A place is where the machine reads next: the number of an instruction, or, behind the first byte of a TEXT, the
   offset in the text plus this flag. So long lists of texts need a byte or two for each byte, and no instruction. */
#define MT_PLACE_TEXT (UINT32_C(1) << 31)
#define MT_TEXT_LAST 0x100u

static inline const mt_instruction *mt_program_at(const mt_program *p, uint32_t place)
{
    return place & MT_PLACE_TEXT ? NULL : &p->code[place];
}

/* Whether a place reads a byte of a text; *at: offset of that byte. */
static inline bool mt_program_text(const mt_program *p, uint32_t place, uint32_t *at)
{
    const mt_instruction *in = mt_program_at(p, place);

    *at = in ? in->a : place & ~MT_PLACE_TEXT;
    return !in || in->op == MT_OP_TEXT;
}

static inline bool mt_program_reads(const mt_program *p, uint32_t place, uint8_t byte)
{
    uint32_t at;

    if (mt_program_text(p, place, &at))
        return (p->text[at] & 0xff) == byte;
    return p->code[place].op == MT_OP_BYTE && mt_byteset_has(&p->sets[p->code[place].a], byte);
}

/* The place that follows when `place` has read a byte. */
static inline uint32_t mt_program_behind(const mt_program *p, uint32_t place)
{
    uint32_t at;

    if (!mt_program_text(p, place, &at))
        return p->code[place].next;
    if (p->text[at] & MT_TEXT_LAST)
        return p->text[at + 1] | (uint32_t)p->text[at + 2] << 16;
    return MT_PLACE_TEXT | (at + 1);
}

/* covered: bytes that are tokens by themselves. All others are removed from every set first, so that tokens can
   complete whatever the program begins. NULL with a sentence where the grammar is too large, too deep, left-recursive,
   or matches nothing. Free with mt_program_free. */
mt_program *mt_program_new(const mt_grammar *grammar, const mt_byteset *covered, mt_error *err) MT_NODISCARD;
void mt_program_free(mt_program *program); /* NULL is fine */

size_t mt_program_bytes(const mt_program *program);

#endif
