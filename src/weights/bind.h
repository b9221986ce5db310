/* Binding: from the names and shapes a model wants to the tensors a checkpoint has. Goes by name and expected shape;
   collects everything that is missing or misshapen and reports it once. */
#ifndef MT_WEIGHTS_BIND_H
#define MT_WEIGHTS_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "kernels/matrix.h"
#include "weights/checkpoint.h"

typedef struct mt_binder mt_binder;

/* Borrows the checkpoint and the arena until mt_binder_finish; what it converts or repacks lives in the arena.
   Names given below are canonical text-model names without the leading prefix: "layers.3.self_attn.q_proj",
   "embed_tokens", "norm", "lm_head"; the binder finds the prefix the file uses ("model.", "model.language_model.",
   "language_model.model.", ...; lm_head lives beside it). Names of a tower begin with "vision.", those of what joins it
   to the text model with "projector." and those of a head that guesses ahead with "mtp."; they stand for
   "model.visual.", "vision_tower.vision_model.", ...
   What begins with '/' is the tensor's whole name. */
mt_binder *mt_binder_new(const mt_checkpoint *c, mt_arena *arena);

/* True when the checkpoint has the module or tensor `path` ("path", "path.weight" or "path.scales"). */
bool mt_bind_has(const mt_binder *b, const char *path);

/* Floats of n elements, converted to f32: "path.weight", or "path" itself when it names a tensor ("....bias").
   NULL (and one more line in the report) when missing or misshapen. */
const float *mt_bind_vector(mt_binder *b, const char *path, size_t n);

/* The same of `count` of them, [count, n]. */
const float *mt_bind_vectors(mt_binder *b, const char *path, size_t count, size_t n);

/* `count` whole numbers below `limit`, stored as signed or unsigned of 32 or 64 bits. */
const uint32_t *mt_bind_numbers(mt_binder *b, const char *path, size_t count, size_t limit);

/* One number that is a tensor by itself; 0 when it is missing. */
float mt_bind_number(mt_binder *b, const char *path);

/* The matrix [n, k] at path: plain, FP8, MLX-quantised, or blocks of MXFP4, decided by what is there. The mapped rows
   are used in place. *out is zeroed when it fails. */
bool mt_bind_matrix(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out);

/* The same with its rows in another order, row i being row order[i] of the file; repacked. */
bool mt_bind_ordered(mt_binder *b, const char *path, size_t n, size_t k, const uint32_t *order, mt_mat *out);

/* The plain tensor [first, second, k] as a matrix of first * second rows. */
bool mt_bind_planes(mt_binder *b, const char *path, size_t first, size_t second, size_t k, mt_mat *out);

/* The sum of the first rows of two matrices that were bound, as floats; the other one may have no rows. */
const float *mt_bind_first_rows(mt_binder *b, const mt_mat *one, const mt_mat *other);

/* Whether the checkpoint has any tensor of a tower. */
bool mt_bind_has_vision(const mt_binder *b);

/* The convolution of a tower over patches of `side` x `side` pixels of `frames` frames, as a matrix
   [n, channels * frames * side * side] whose columns go by channel, frame, row, column. Repacked where the file has
   channels last, as it has where it is a matrix. */
bool mt_bind_patches(mt_binder *b, const char *path, size_t n, size_t channels, size_t frames, size_t side,
                     mt_mat *out);

/* The matrix [n, k] that is stored as [k, n]; repacked. */
bool mt_bind_transposed(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out);

/* Rows [first, first + count) of m. FP8 blocks must not be cut. */
mt_mat mt_mat_rows(const mt_mat *m, size_t first, size_t count);

/* Has the system begin to read what of the matrix is not in memory. */
void mt_mat_read_ahead(const mt_mat *m);

/* The weights of a convolution over time, one channel by itself: [channels, 1, taps], or [channels, taps, 1] as MLX has
   it, which sets *channels_last. Converted to [taps][channels]; NULL when missing or misshapen. */
const float *mt_bind_conv(mt_binder *b, const char *path, size_t channels, size_t taps, bool *channels_last);

/* The experts of a sparse layer at path ("layers.3.mlp"): gate, up [inner, hidden] and down [hidden, inner] of each
   of `experts`, from any layout: experts.E.gate_proj, switch_mlp.gate_proj (stacked), experts.gate_up_proj fused,
   transposed or not by shape (a transposed one is repacked, and its cost reported). woven: in a fused one, rows of gate
   and up alternate, else gate comes first. Arrays of `experts`. */
bool mt_bind_experts(mt_binder *b, const char *path, size_t experts, size_t hidden, size_t inner, bool woven,
                     mt_mat *gate, mt_mat *up, mt_mat *down);

/* What repacking and conversion cost, and what was bound at all. */
typedef struct mt_bind_cost {
    uint64_t copied_bytes; /* new memory; the rest is used where it is mapped */
    double seconds;
    uint64_t mapped_bytes; /* of tensors used in place */
    size_t unused_tensors; /* nobody asked for */
    uint64_t unused_bytes;
} mt_bind_cost;

/* Frees the binder. False with one error that names all that is missing, with wanted and found shape. Lists tensors
   nobody asked for at debug level. cost may be NULL. */
bool mt_binder_finish(mt_binder *b, mt_bind_cost *cost, mt_error *err) MT_NODISCARD;

#endif
