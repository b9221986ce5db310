/* Compiled constraints by what they were compiled from, so that clients that always send the same schema wait for it
   once. Any thread; what it hands out is the engine's to use. */
#ifndef MT_SERVER_CONSTRAINTS_H
#define MT_SERVER_CONSTRAINTS_H

#include "chat/shape.h"
#include "sample/constraint/constraint.h"

typedef struct mt_constraints mt_constraints;

/* Borrows tokenizer and ends. vocab: of the model. limit: bytes for all that is compiled and the vocabulary. NULL with
   a sentence. Free with mt_constraints_free, after the engine has ended. */
mt_constraints *mt_constraints_new(const mt_tokenizer *tokenizer, size_t vocab, const uint32_t *ends, size_t end_count,
                                   size_t limit, mt_error *err) MT_NODISCARD;
void mt_constraints_free(mt_constraints *c); /* NULL is fine */

/* The constraint of a shape where it is compiled already, with a reference for the caller; else NULL. owner: 32 bytes
   that mark whose it is, so that nobody else can tell by the time it takes that it is known; NULL: everybody's. */
mt_constraint *mt_constraints_find(mt_constraints *c, const uint8_t *owner, const mt_shape *shape) MT_NODISCARD;

/* The constraint of a shape, compiled if need be, with a reference for the caller. NULL with a sentence; MT_E_BUSY:
   there is no room. Ends soon after patience is over (NULL: endless), with any sentence. */
mt_constraint *mt_constraints_get(mt_constraints *c, const uint8_t *owner, const mt_shape *shape,
                                  const mt_patience *patience, mt_error *err) MT_NODISCARD;

typedef struct mt_constraints_stats {
    uint64_t asked;    /* constraints that requests needed, known already or not */
    uint64_t compiled; /* of these, those that had to be compiled, and were */
    uint64_t refused;  /* and those that could not be */
    uint64_t busy;     /* how often there was no room for one */
    uint64_t compiling_ns;
    size_t kept;  /* for requests to come */
    size_t bytes; /* of the vocabulary and all that is compiled, kept or in use */
} mt_constraints_stats;

void mt_constraints_stats_read(mt_constraints *c, mt_constraints_stats *out);

#endif
