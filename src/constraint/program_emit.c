/* Appends instructions to a program (program_inside.h). */
#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/program_inside.h"

enum { LOOK = 1024 }; /* instructions between two checks of patience */

uint32_t mt_program_emit(mt_compiler *c, mt_instruction in)
{
    mt_program *p = c->p;

    if (p->count == MT_LIMIT_PROGRAM_CODE || (p->count % LOOK == 0 && mt_grammar_stopped(c->g)))
        c->full = true;
    if (c->full)
        return 0;
    p->code = mt_grow(p->code, &c->cap, p->count + 1, sizeof(*p->code));
    p->code[p->count] = in;
    return (uint32_t)p->count++;
}

uint32_t mt_program_add_targets(mt_compiler *c, size_t count)
{
    mt_program *p = c->p;
    const size_t begin = p->target_count;

    p->targets = mt_grow(p->targets, &c->target_cap, p->target_count + count, sizeof(*p->targets));
    p->target_count += count;
    if (count > p->widest)
        p->widest = (uint32_t)count;
    return (uint32_t)begin;
}

/* Stores a text, with its successor behind it; returns its offset. */
static uint32_t add_text(mt_compiler *c, const char *bytes, size_t len, uint32_t next)
{
    mt_program *p = c->p;
    uint16_t *at;

    if (p->text_len + len > MT_LIMIT_GRAMMAR_BYTES) {
        c->full = true;
        return 0;
    }
    p->text = mt_grow(p->text, &c->text_cap, p->text_len + len + 2, sizeof(*p->text));
    at = p->text + p->text_len;
    for (size_t i = 0; i < len; i++)
        at[i] = (unsigned char)bytes[i];
    at[len - 1] |= MT_TEXT_LAST;
    at[len] = (uint16_t)next;
    at[len + 1] = (uint16_t)(next >> 16);
    p->text_len += len + 2;
    return (uint32_t)(p->text_len - len - 2);
}

uint32_t mt_program_literal(mt_compiler *c, const char *bytes, size_t len, uint32_t next)
{
    for (size_t i = 0; i < len; i++) {
        if (!mt_byteset_has(c->covered, (unsigned char)bytes[i]))
            /* no token could write this byte: a fork without targets matches nothing */
            return mt_program_emit(c, (mt_instruction){.op = MT_OP_FORK});
        c->read[(unsigned char)bytes[i]] = true;
    }
    if (len == 0)
        return next;
    if (len == 1)
        return mt_program_emit(c, (mt_instruction){.op = MT_OP_BYTE, .a = (unsigned char)bytes[0], .next = next});
    return mt_program_emit(
        c, (mt_instruction){.op = MT_OP_TEXT, .a = add_text(c, bytes, len, next), .b = (uint32_t)len, .next = next});
}
