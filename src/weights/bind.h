/* Binding: finds the tensors that a model needs in a checkpoint, by name and expected shape. Collects everything that
   is missing or has a wrong shape, and reports it once. */
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

/* Borrows the checkpoint and the arena until mt_binder_finish; tensors that are converted or repacked live in the
   arena. Names passed below are canonical names of a text model without prefix: "layers.3.self_attn.q_proj",
   "embed_tokens", "norm", "lm_head". The binder finds the prefix that the file uses ("model.", "model.language_model.",
   "language_model.model.", ...; lm_head is beside it). Names of a vision tower begin with "vision.", those of what
   joins it to the text model with "projector.", those of a drafting head with "mtp."; they stand for "model.visual.",
   "vision_tower.vision_model." and so on. A name that begins with '/' is a tensor's full name. */
mt_binder *mt_binder_new(const mt_checkpoint *c, mt_arena *arena);

/* True when the checkpoint has the module or tensor `path` ("path", "path.weight", "path.qweight" ...). */
bool mt_bind_has(const mt_binder *b, const char *path);

/* Floats of n elements, converted to f32: "path.weight", or "path" itself when it names a tensor ("....bias").
   NULL (and one more line in the report) when missing or misshapen. */
const float *mt_bind_vector(mt_binder *b, const char *path, size_t n);

/* `count` vectors of n elements: a tensor [count, n]. */
const float *mt_bind_vectors(mt_binder *b, const char *path, size_t count, size_t n);

/* `count` integers below `limit`, stored as signed or unsigned 32 or 64 bits. */
const uint32_t *mt_bind_numbers(mt_binder *b, const char *path, size_t count, size_t limit);

/* A tensor with one number; 0 when it is missing. */
float mt_bind_number(mt_binder *b, const char *path);

/* The matrix [n, k] at path, in any layout (docs/models.md), as the tensors there show. Rows in the mapped file are
   used in place where a kernel reads them so. *out is zeroed on failure. */
bool mt_bind_matrix(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out);

/* The same with rows in another order: row i is row order[i] of the file; repacked. */
bool mt_bind_ordered(mt_binder *b, const char *path, size_t n, size_t k, const uint32_t *order, mt_mat *out);

/* `count` matrices [n, k] that are stored one behind the other, as one with all their rows. */
bool mt_bind_stack(mt_binder *b, const char *path, size_t count, size_t n, size_t k, mt_mat *out);

/* A plain tensor [first, second, k] as a matrix with first * second rows; repacked where it is [second, first, k]. */
bool mt_bind_planes(mt_binder *b, const char *path, size_t first, size_t second, size_t k, mt_mat *out);

/* The sum of the first rows of two bound matrices, as floats; `other` may have no rows. */
const float *mt_bind_first_rows(mt_binder *b, const mt_mat *one, const mt_mat *other);

/* Whether the checkpoint has any tensor of a vision tower. */
bool mt_bind_has_vision(const mt_binder *b);

/* A tower's convolution over patches of side x side pixels and `frames` frames, as a matrix [n, channels * frames *
   side * side] with columns ordered by channel, frame, row, column. Repacked where the file has channels last, as it
   has where it stores a matrix, or a tensor for each frame ("path.weight", "path.weight.1"). */
bool mt_bind_patches(mt_binder *b, const char *path, size_t n, size_t channels, size_t frames, size_t side,
                     mt_mat *out);

/* The matrix [n, k] that is stored as [k, n]; repacked. */
bool mt_bind_transposed(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out);

/* Rows [first, first + count) of m. They must not cut an FP8 block, whose 128 rows share a scale. */
mt_mat mt_mat_rows(const mt_mat *m, size_t first, size_t count);

/* Whether a cut before `row` would divide rows that share their scales (FP8). */
bool mt_mat_cuts_scales(const mt_mat *m, size_t row);

/* Asks the system to read the matrix's pages that are not in memory. */
void mt_mat_read_ahead(const mt_mat *m);

/* The weights of a depthwise convolution over time: [channels, 1, taps], or [channels, taps, 1] as MLX stores it, which
   sets *channels_last. Converted to [taps][channels]; NULL when missing or of another shape. */
const float *mt_bind_conv(mt_binder *b, const char *path, size_t channels, size_t taps, bool *channels_last);

/* The experts of a layer at path ("layers.3.mlp"): gate and up [inner, hidden] and down [hidden, inner] of each expert,
   from any layout: experts.E.gate_proj, switch_mlp.gate_proj (stacked), experts.gate_up_proj (gate and up in one),
   transposed or not, as its shape shows (a transposed one is repacked, which counts as cost). interleaved: in
   gate_up_proj the rows of gate and up alternate; else gate comes first. gate, up and down are arrays of `experts`
   elements. */
bool mt_bind_experts(mt_binder *b, const char *path, size_t experts, size_t hidden, size_t inner, bool interleaved,
                     mt_mat *gate, mt_mat *up, mt_mat *down);

/* The amount of weights bound, and the cost of repacking and conversion. */
typedef struct mt_bind_cost {
    uint64_t copied_bytes; /* bytes of new memory; other tensors are used where they are mapped */
    double seconds;        /* spent repacking and converting */
    uint64_t mapped_bytes; /* of tensors used in place */
    size_t unused_tensors; /* that no call asked for */
    uint64_t unused_bytes;
} mt_bind_cost;

/* Frees the binder. False with one sentence that names all that is missing, with wanted and found shape. Logs unused
   tensors at debug level. cost may be NULL. */
bool mt_binder_finish(mt_binder *b, mt_bind_cost *cost, mt_error *err) MT_NODISCARD;

#endif
