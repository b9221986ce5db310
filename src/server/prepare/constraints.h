/* A cache of compiled constraints, found by what they were compiled from, so that a client that always sends the same
   schema waits for its compilation once. Each served model has one. Any thread. */
#ifndef MT_SERVER_PREPARE_CONSTRAINTS_H
#define MT_SERVER_PREPARE_CONSTRAINTS_H

#include "chat/shape.h"
#include "constraint/constraint.h"

typedef struct mt_constraints mt_constraints;

/* Borrows tokenizer and ends (the token ids that end an answer) until it is freed. vocab: number of ids that the model
   has. limit: bytes for all compiled constraints and the index of the vocabulary. NULL: *err. Free with
   mt_constraints_free, after the engine has ended. */
mt_constraints *mt_constraints_new(const mt_tokenizer *tokenizer, size_t vocab, const uint32_t *ends, size_t end_count,
                                   size_t limit, mt_error *err) MT_NODISCARD;
void mt_constraints_free(mt_constraints *c); /* NULL is fine */

/* The constraint of a shape if it is compiled already, with a reference for the caller; else NULL. owner: 32 bytes of
   an account that shares with no other, so that no one else can tell by the time it takes that it is known; NULL: all
   share. */
mt_constraint *mt_constraints_find(mt_constraints *c, const uint8_t *owner, const mt_shape *shape) MT_NODISCARD;

/* The constraint of a shape, compiled where it is not yet, with a reference for the caller. NULL: *err; MT_E_BUSY: no
   memory is left for it. Gives up soon after patience is over (NULL: never), with some error. */
mt_constraint *mt_constraints_get(mt_constraints *c, const uint8_t *owner, const mt_shape *shape,
                                  const mt_patience *patience, mt_error *err) MT_NODISCARD;

typedef struct mt_constraints_stats {
    uint64_t asked;        /* how often a constraint was wanted */
    uint64_t compiled;     /* how many were compiled */
    uint64_t refused;      /* how many could not be compiled */
    uint64_t busy;         /* for how many there was no memory */
    uint64_t compiling_ns; /* nanoseconds that all compilations took */
    size_t kept;           /* how many the cache has now */
    /* Of the vocabulary's index and all compiled constraints, kept or in use */
    size_t bytes;
} mt_constraints_stats;

void mt_constraints_stats_read(mt_constraints *c, mt_constraints_stats *out);

#endif
