/* Finds which instructions can reach the end of their rule, and with how many stack frames. Both are found from the end
   backwards: what is known of an instruction is passed once to those that continue with it or call it, so that each is
   visited a few times, however rules refer to one another. Heights are found in ascending order, as Dijkstra's
   algorithm finds distances. The automaton drops places whose height exceeds the frames left, and so never enters a
   rule that cannot end. */
#include "base/alloc.h"
#include "constraint/limits.h"
#include "constraint/program_inside.h"

#define TOO_HIGH (MT_LIMIT_GRAMMAR_FRAMES + 1) /* heights from here on are treated alike */

/* Calls `tell` with each instruction that the result of `at` depends on. */
static void each_successor(mt_compiler *c, uint32_t at, void (*tell)(mt_compiler *c, uint32_t at, uint32_t successor))
{
    const mt_instruction *in = &c->p->code[at];

    switch ((mt_op)in->op) {
    case MT_OP_RETURN: break;
    case MT_OP_FORK:
        for (uint32_t i = 0; i < in->b; i++)
            tell(c, at, c->p->targets[in->a + i]);
        break;
    case MT_OP_CALL:
    case MT_OP_REPEAT: tell(c, at, in->a); /* fall through */
    case MT_OP_BYTE:
    case MT_OP_TEXT:
    case MT_OP_TOKEN:
    case MT_OP_FREE: tell(c, at, in->next); break;
    }
}

static void count_user(mt_compiler *c, uint32_t at, uint32_t successor)
{
    (void)at;
    c->first_user[successor + 1]++;
}

/* first_user[i] is where the next user of i goes; afterwards it is where those of i + 1 begin. */
static void add_user(mt_compiler *c, uint32_t at, uint32_t successor)
{
    c->users[c->first_user[successor]++] = at;
}

void mt_program_link(mt_compiler *c)
{
    const size_t count = c->p->count;

    c->first_user = mt_alloc_array(count + 1, sizeof(*c->first_user));
    for (uint32_t i = 0; i < count; i++)
        each_successor(c, i, count_user);
    for (size_t i = 0; i < count; i++)
        c->first_user[i + 1] += c->first_user[i];
    c->users = mt_alloc_array((size_t)c->first_user[count] + 1, sizeof(*c->users));
    for (uint32_t i = 0; i < count; i++)
        each_successor(c, i, add_user);
    for (size_t i = count; i > 0; i--)
        c->first_user[i] = c->first_user[i - 1];
    c->first_user[0] = 0;
}

/* Whether an instruction is nullable, now that one of its successors is. */
static bool now_nullable(const mt_compiler *c, const mt_instruction *in)
{
    switch ((mt_op)in->op) {
    case MT_OP_FORK:
    case MT_OP_FREE: return true;
    case MT_OP_CALL: return c->nullable[in->a] && c->nullable[in->next];
    case MT_OP_REPEAT: return (in->b == 0 || c->nullable[in->a]) && c->nullable[in->next];
    default: return false;
    }
}

void mt_program_find_nullable(mt_compiler *c)
{
    uint32_t *todo = mt_alloc_array(c->p->count, sizeof(*todo)); /* each instruction once */
    size_t count = 1;

    c->nullable = mt_alloc_array(c->p->count, sizeof(*c->nullable));
    c->nullable[0] = true; /* RETURN */
    while (count > 0) {
        const uint32_t at = todo[--count];

        for (uint32_t i = c->first_user[at]; i < c->first_user[at + 1]; i++) {
            const uint32_t user = c->users[i];

            if (c->nullable[user] || !now_nullable(c, &c->p->code[user]))
                continue;
            c->nullable[user] = true;
            todo[count++] = user;
        }
    }
    mt_free(todo);
}

static uint32_t with_frame(uint32_t inside, uint32_t behind)
{
    if (inside == MT_PROGRAM_ENDLESS || behind == MT_PROGRAM_ENDLESS)
        return MT_PROGRAM_ENDLESS;
    inside += inside < TOO_HIGH;
    return inside > behind ? inside : behind;
}

/* The height of an instruction, where one of its successors has this height and none has a lower one. */
static uint32_t height_now(const mt_program *p, const mt_instruction *in, uint32_t height)
{
    const mt_instruction *code = p->code;
    const mt_byteset *set;

    switch ((mt_op)in->op) {
    case MT_OP_BYTE:
        set = &p->sets[in->a];
        return set->bits[0] | set->bits[1] | set->bits[2] | set->bits[3] ? height : MT_PROGRAM_ENDLESS;
    case MT_OP_CALL: return in->next == 0 ? code[in->a].height : with_frame(code[in->a].height, code[in->next].height);
    case MT_OP_REPEAT:
        return in->b == 0 ? code[in->next].height : with_frame(code[in->a].height, code[in->next].height);
    default: return height;
    }
}

void mt_program_find_heights(mt_compiler *c)
{
    mt_instruction *code = c->p->code;
    uint32_t *below = mt_alloc_array(c->p->count, sizeof(*below)); /* next instruction of the same height, plus 1 */
    uint32_t heads[TOO_HIGH + 1] = {[0] = 1};                      /* RETURN */

    for (size_t i = 1; i < c->p->count; i++)
        code[i].height = MT_PROGRAM_ENDLESS;
    code[0].height = 0;
    for (uint32_t height = 0; height <= TOO_HIGH;) {
        const uint32_t at = heads[height] - 1;

        if (heads[height] == 0) {
            height++;
            continue;
        }
        heads[height] = below[at];
        for (uint32_t i = c->first_user[at]; i < c->first_user[at + 1]; i++) {
            const uint32_t user = c->users[i];
            const uint32_t found =
                code[user].height == MT_PROGRAM_ENDLESS ? height_now(c->p, &code[user], height) : MT_PROGRAM_ENDLESS;

            if (found == MT_PROGRAM_ENDLESS)
                continue;
            code[user].height = found;
            below[user] = heads[found];
            heads[found] = user + 1;
        }
    }
    mt_free(below);
}
