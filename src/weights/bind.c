/* The binder (bind.h): prefixes, vectors, and the record of what was found, missed and left over.

   Made for one load and used by one thread. Invariants:
   1. a mt_mat that was returned points into the mapping or the arena, with every row inside;
   2. no failure stops the binding: problems are counted and written down, and mt_binder_finish reports them. Rejected:
      stopping at the first missing tensor. People would download a checkpoint once for each error. */
#include "weights/bind.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/convert.h"
#include "weights/bind_internal.h"

/* Prefixes of the text model's tensors in known files, the longer ones first. */
static const char *const prefixes[] = {"model.text_model.",
                                       "model.language_model.",
                                       "language_model.model.",
                                       "model.",
                                       "language_model.",
                                       "backbone.",
                                       ""};

/* Names of the output head, which is beside the text model or above it. */
static const char *const heads[] = {"lm_head", "language_model.lm_head", "model.lm_head",
                                    "model.language_model.lm_head"};

/* Prefixes of a tower's tensors, and of what joins it to the text model. */
static const char *const towers[] = {"model.visual.vision_model.",
                                     "visual.vision_model.",
                                     "model.visual.",
                                     "visual.",
                                     "vision_tower.vision_model.",
                                     "model.vision_tower.vision_model.",
                                     "vision_tower.",
                                     "model.vision_tower.",
                                     "model.vision_model.",
                                     "vision_model.",
                                     "model.vision_embedder.",
                                     "vision_embedder.",
                                     "model.embed_vision.",
                                     "embed_vision."};
static const char *const projectors[] = {"multi_modal_projector.",
                                         "model.projector.",
                                         "mlp_AR.",
                                         "model.connector.",
                                         "connector.",
                                         "visual.projector.",
                                         "model.multi_modal_projector.",
                                         "model.embed_vision.multimodal_embedder.",
                                         "embed_vision.multimodal_embedder.",
                                         "model.embed_vision.",
                                         "embed_vision."};
static const char *const guesses[] = {"mtp.", "language_model.mtp.", "model.mtp."};

const mt_tensor_info *mt_binder_find(const mt_binder *b, const char *name, const char *suffix)
{
    char full[MT_BIND_NAME + 32];
    int len = snprintf(full, sizeof(full), "%s%s", name, suffix);
    return len > 0 && (size_t)len < sizeof(full) ? mt_checkpoint_find(b->c, full) : NULL;
}

const mt_tensor_info *mt_binder_use(mt_binder *b, const char *name, const char *suffix)
{
    const mt_tensor_info *t = mt_binder_find(b, name, suffix);
    if (!t)
        return NULL;
    b->state[t - mt_checkpoint_at(b->c, 0)] = MT_BIND_IN_PLACE;
    mt_progress_add(&b->progress, t->bytes);
    return t;
}

const mt_tensor_info *mt_binder_take(mt_binder *b, const char *name, const char *suffix)
{
    const mt_tensor_info *t = mt_binder_use(b, name, suffix);
    if (t)
        mt_binder_copied(b, t);
    return t;
}

void mt_binder_copied(mt_binder *b, const mt_tensor_info *t)
{
    b->state[t - mt_checkpoint_at(b->c, 0)] = MT_BIND_COPIED;
}

bool mt_binder_any(const mt_binder *b, const char *name, const char *suffix)
{
    char full[MT_BIND_NAME + 32];
    snprintf(full, sizeof(full), "%s%s", name, suffix);
    size_t i = mt_checkpoint_lower(b->c, full);
    return i < mt_checkpoint_count(b->c) && strncmp(mt_checkpoint_at(b->c, i)->name, full, strlen(full)) == 0;
}

static bool has_module(const mt_binder *b, const char *name)
{
    static const char *const suffixes[] = {".weight", ".scales", "", ".qweight", ".weight_packed"};
    for (size_t i = 0; i < MT_COUNT(suffixes); i++) {
        if (mt_binder_find(b, name, suffixes[i]))
            return true;
    }
    return false;
}

static const char *find_prefix(const mt_binder *b)
{
    static const char *const marks[] = {"embed_tokens.", "layers."};
    for (size_t m = 0; m < MT_COUNT(marks); m++) {
        for (size_t i = 0; i < MT_COUNT(prefixes); i++) {
            if (mt_binder_any(b, prefixes[i], marks[m]))
                return prefixes[i];
        }
    }
    return "model.";
}

/* The first of the prefixes that any tensor has; where none has, the first. */
static const char *find_any(const mt_binder *b, const char *const *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mt_binder_any(b, known[i], ""))
            return known[i];
    return known[0];
}

bool mt_bind_has_vision(const mt_binder *b)
{
    return mt_binder_any(b, b->vision, "");
}

mt_binder *mt_binder_new(const mt_checkpoint *c, mt_arena *arena)
{
    mt_binder *b = mt_alloc(sizeof(*b));
    b->c = c;
    b->arena = arena;
    b->headers_only = mt_checkpoint_inspecting(c);
    b->state = mt_alloc(mt_checkpoint_count(c) * sizeof(*b->state));
    b->prefix = find_prefix(b);
    b->vision = find_any(b, towers, MT_COUNT(towers));
    b->projector = find_any(b, projectors, MT_COUNT(projectors));
    b->guess = find_any(b, guesses, MT_COUNT(guesses));
    /* the rest of the message's length is for the sentence around it */
    mt_buf_init(&b->report, MT_LIMIT_ERROR_TEXT * 5 / 8);
    (void)!mt_quant_read(&b->quant, mt_checkpoint_config(c), &b->failed);
    mt_progress_begin(&b->progress, "weights.repacking", "repacking weights", mt_checkpoint_bytes(c));
    return b;
}

static const char *head_name(const mt_binder *b)
{
    for (size_t i = 0; i < MT_COUNT(heads); i++) {
        if (has_module(b, heads[i]))
            return heads[i];
    }
    return strcmp(b->prefix, "language_model.model.") == 0 ? heads[1] : heads[0];
}

void mt_binder_name(const mt_binder *b, const char *path, char *out)
{
    static const char head[] = "lm_head", vision[] = "vision.", projector[] = "projector.", guess[] = "mtp.";
    if (strncmp(path, head, sizeof(head) - 1) == 0)
        snprintf(out, MT_BIND_NAME, "%s%s", head_name(b), path + sizeof(head) - 1);
    else if (strncmp(path, vision, sizeof(vision) - 1) == 0)
        snprintf(out, MT_BIND_NAME, "%s%s", b->vision, path + sizeof(vision) - 1);
    else if (strncmp(path, guess, sizeof(guess) - 1) == 0)
        snprintf(out, MT_BIND_NAME, "%s%s", b->guess, path + sizeof(guess) - 1);
    else if (strncmp(path, projector, sizeof(projector) - 1) == 0)
        snprintf(out, MT_BIND_NAME, "%s%s", b->projector, path + sizeof(projector) - 1);
    else if (path[0] == '/')
        snprintf(out, MT_BIND_NAME, "%s", path + 1);
    else
        snprintf(out, MT_BIND_NAME, "%s%s", b->prefix, path);
}

bool mt_bind_has(const mt_binder *b, const char *path)
{
    char name[MT_BIND_NAME];
    mt_binder_name(b, path, name);
    return has_module(b, name);
}

void mt_shape_text(char *out, const uint64_t *shape, unsigned dims)
{
    size_t len = (size_t)snprintf(out, MT_SHAPE_TEXT, "[");
    for (unsigned i = 0; i < dims; i++)
        len += (size_t)snprintf(out + len, MT_SHAPE_TEXT - len, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
    snprintf(out + len, MT_SHAPE_TEXT - len, "]");
}

bool mt_binder_miss(mt_binder *b, const char *name, const char *wanted, const char *found, ...)
{
    char why[400], line[800];
    va_list args;
    va_start(args, found);
    vsnprintf(why, sizeof(why), found, args);
    va_end(args);
    int len = snprintf(line, sizeof(line), "\"%.160s\" wanted %s, %s", name, wanted, why);
    mt_log_debug("weights.missing", "%s", line);
    b->problems++;
    bool room = b->shown + 1 == b->problems && b->report.len + (size_t)len + 2 <= b->report.limit;
    if (room && mt_buf_printf(&b->report, "%s%s", b->shown ? "; " : "", line))
        b->shown++;
    return false;
}

void *mt_binder_copy(mt_binder *b, size_t bytes)
{
    b->cost.copied_bytes += bytes;
    void *memory = mt_arena_alloc(b->arena, bytes);
    if (!memory && b->failed.code == MT_OK)
        mt_fail(&b->failed, MT_E_MEMORY, "\"%s\" needs more memory for repacked weights than is allowed",
                mt_checkpoint_dir(b->c));
    return memory;
}

void mt_binder_run(mt_binder *b, mt_pool_fn *fn, void *ctx, size_t items)
{
    if (!b->pool && items > 1)
        b->pool = mt_pool_new(0, NULL);
    if (b->pool)
        mt_pool_run(b->pool, fn, ctx, items);
    for (size_t i = 0; !b->pool && i < items; i++)
        fn(ctx, i, 0);
}

float mt_tensor_float(const mt_tensor_info *t, size_t i)
{
    uint16_t half;
    float value;
    if (t->dtype == MT_DTYPE_F32) {
        memcpy(&value, t->data + 4 * i, sizeof(value));
        return value;
    }
    memcpy(&half, t->data + 2 * i, sizeof(half));
    return t->dtype == MT_DTYPE_F16 ? mt_f32_from_f16(half) : mt_f32_from_bf16(half);
}

/* Element i of a tensor whose rows have `width` elements, put right. */
static float mended(const mt_tensor_info *t, size_t i, size_t width)
{
    const mt_tensor_fix *fix = t->fix;
    if (!fix)
        return mt_tensor_float(t, i);
    const float value = mt_tensor_float(t, fix->rows ? fix->rows[i / width] * width + i % width : i) - fix->less;
    return fix->logarithm ? logf(fabsf(value)) : value;
}

static const float *convert(mt_binder *b, const mt_tensor_info *t, size_t n)
{
    uint64_t start = mt_clock_ns();
    const size_t width = t->dims > 1 ? t->shape[1] : 1;
    float *out = mt_binder_copy(b, n * sizeof(*out));
    for (size_t i = 0; i < n && out && !b->headers_only; i++)
        out[i] = mended(t, i, width);
    mt_binder_copied(b, t);
    b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return out;
}

/* Finds a tensor of this shape and converts it to floats. */
static const float *bind_floats(mt_binder *b, const char *path, const uint64_t *shape, uint32_t dims)
{
    char name[MT_BIND_NAME], wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT];
    mt_binder_name(b, path, name);
    mt_shape_text(wanted, shape, dims);
    const mt_tensor_info *t = mt_binder_use(b, name, ".weight");
    if (!t)
        t = mt_binder_use(b, name, "");
    if (!t) {
        mt_binder_miss(b, name, wanted, "absent");
        return NULL;
    }
    const bool row = dims == 1 && t->dims == 2 && t->shape[0] == 1; /* a vector that is stored as a row */
    if (t->dims != dims + row || memcmp(t->shape + row, shape, dims * sizeof(*shape)) != 0 ||
        mt_dtype_size(t->dtype) == 0) {
        mt_shape_text(found, t->shape, t->dims);
        mt_binder_miss(b, t->name, wanted, "found %s %s", t->dtype_name, found);
        return NULL;
    }
    return convert(b, t, dims == 1 ? shape[0] : shape[0] * shape[1]);
}

const float *mt_bind_vector(mt_binder *b, const char *path, size_t n)
{
    return bind_floats(b, path, (const uint64_t[]){n}, 1);
}

float mt_bind_number(mt_binder *b, const char *path)
{
    char name[MT_BIND_NAME], found[MT_SHAPE_TEXT];
    mt_binder_name(b, path, name);
    const mt_tensor_info *t = mt_binder_use(b, name, "");
    if (!t) {
        mt_binder_miss(b, name, "one number", "absent");
        return 0;
    }
    if (t->dims > 1 || (t->dims == 1 && t->shape[0] != 1) || mt_dtype_size(t->dtype) == 0) {
        mt_shape_text(found, t->shape, t->dims);
        mt_binder_miss(b, t->name, "one number", "found %s %s", t->dtype_name, found);
        return 0;
    }
    mt_binder_copied(b, t);
    return b->headers_only ? 0 : mt_tensor_float(t, 0);
}

/* An integer of 4 or 8 bytes; a negative one becomes larger than any limit. */
static uint64_t whole(const mt_tensor_info *t, size_t i, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, t->data + size * i, size);
    return value;
}

const uint32_t *mt_bind_numbers(mt_binder *b, const char *path, size_t count, size_t limit)
{
    char name[MT_BIND_NAME], wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT];
    mt_binder_name(b, path, name);
    mt_shape_text(wanted, (const uint64_t[]){count}, 1);
    const mt_tensor_info *t = mt_binder_use(b, name, "");
    if (!t) {
        mt_binder_miss(b, name, wanted, "absent");
        return NULL;
    }
    const bool wide = strcmp(t->dtype_name, "I64") == 0 || strcmp(t->dtype_name, "U64") == 0;
    if (t->dims != 1 || t->shape[0] != count ||
        !(wide || t->dtype == MT_DTYPE_U32 || strcmp(t->dtype_name, "I32") == 0)) {
        mt_shape_text(found, t->shape, t->dims);
        mt_binder_miss(b, t->name, wanted, "found %s %s", t->dtype_name, found);
        return NULL;
    }
    uint32_t *out = mt_binder_copy(b, count * sizeof(*out));
    for (size_t i = 0; i < count && out && !b->headers_only; i++) {
        const uint64_t value = whole(t, i, wide ? 8 : 4);
        if (value >= limit) {
            mt_binder_miss(b, t->name, "numbers of tokens", "found %lld at %zu", (long long)value, i);
            return NULL;
        }
        out[i] = (uint32_t)value;
    }
    mt_binder_copied(b, t);
    return out;
}

const float *mt_bind_vectors(mt_binder *b, const char *path, size_t count, size_t n)
{
    return bind_floats(b, path, (const uint64_t[]){count, n}, 2);
}

static const float *convert_conv(mt_binder *b, const mt_tensor_info *t, size_t channels, size_t taps)
{
    const uint64_t start = mt_clock_ns();
    float *out = mt_binder_copy(b, channels * taps * sizeof(*out));
    for (size_t i = 0; i < channels * taps && out && !b->headers_only; i++)
        out[i % taps * channels + i / taps] = mended(t, i, taps);
    mt_binder_copied(b, t);
    b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return out;
}

const float *mt_bind_conv(mt_binder *b, const char *path, size_t channels, size_t taps, bool *channels_last)
{
    char name[MT_BIND_NAME], wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT];
    mt_binder_name(b, path, name);
    mt_shape_text(wanted, (const uint64_t[]){channels, 1, taps}, 3);
    const mt_tensor_info *t = mt_binder_use(b, name, ".weight");
    if (!t) {
        mt_binder_miss(b, name, wanted, "absent");
        return NULL;
    }
    const bool sized = t->dims == 3 && t->shape[0] == channels && mt_dtype_size(t->dtype) > 0;
    const bool ours = sized && t->shape[1] == 1 && t->shape[2] == taps;
    if (!ours && !(sized && t->shape[1] == taps && t->shape[2] == 1)) {
        mt_shape_text(found, t->shape, t->dims);
        mt_binder_miss(b, t->name, wanted, "found %s %s", t->dtype_name, found);
        return NULL;
    }
    if (!ours)
        *channels_last = true;
    return convert_conv(b, t, channels, taps);
}

/* The part of a name that says what an unused tensor belongs to: "model.visual", "mtp", "model.layers". */
static size_t group_length(const char *name)
{
    size_t len = strcspn(name, ".");
    if (strncmp(name, "model.", 6) == 0 || strncmp(name, "language_model.", 15) == 0)
        len += 1 + strcspn(name + len + 1, ".");
    return len;
}

/* Logs the tensors that no binder asked for, by group. */
static void log_unused(const mt_binder *b)
{
    mt_buf groups;
    mt_buf_init(&groups, 1024);
    size_t run = 0, last = mt_checkpoint_count(b->c);
    for (size_t i = 0; i < mt_checkpoint_count(b->c); i++) {
        const char *name = mt_checkpoint_at(b->c, i)->name;
        if (b->state[i] != MT_BIND_UNUSED)
            continue;
        mt_log_debug("weights.unused", "tensor=%s", name);
        const char *before = last < i ? mt_checkpoint_at(b->c, last)->name : "";
        size_t len = group_length(name);
        if (run > 0 && (group_length(before) != len || strncmp(before, name, len) != 0)) {
            mt_buf_printf(&groups, " %.*s=%zu", (int)group_length(before), before, run);
            run = 0;
        }
        run++;
        last = i;
    }
    if (run > 0) {
        const char *name = mt_checkpoint_at(b->c, last)->name;
        mt_buf_printf(&groups, " %.*s=%zu", (int)group_length(name), name, run);
        mt_log_debug("weights.unused", "tensors=%zu bytes=%llu%s", b->cost.unused_tensors,
                     (unsigned long long)b->cost.unused_bytes, groups.data ? groups.data : "");
    }
    mt_buf_free(&groups);
}

static void count_bytes(mt_binder *b)
{
    for (size_t i = 0; i < mt_checkpoint_count(b->c); i++) {
        const mt_tensor_info *t = mt_checkpoint_at(b->c, i);
        if (b->state[i] == MT_BIND_IN_PLACE) {
            b->cost.mapped_bytes += t->bytes;
        } else if (b->state[i] == MT_BIND_UNUSED) {
            b->cost.unused_tensors++;
            b->cost.unused_bytes += t->bytes;
        }
    }
}

/* Sets the error that names all that is missing. */
static bool tell(const mt_binder *b, mt_error *err)
{
    if (b->failed.code != MT_OK) {
        if (err)
            *err = b->failed;
        return false;
    }
    if (b->problems == 0)
        return true;
    char more[48] = "";
    if (b->problems > b->shown)
        snprintf(more, sizeof(more), "%sand %zu more", b->shown ? "; " : "", b->problems - b->shown);
    return mt_fail(
        err, MT_E_INVALID,
        "\"%.150s\" does not hold the %zu tensor%s its config.json calls for: %s%s; download it again, or check that "
        "config.json belongs to these weights",
        mt_checkpoint_dir(b->c), b->problems, b->problems == 1 ? "" : "s", b->report.data ? b->report.data : "", more);
}

bool mt_binder_finish(mt_binder *b, mt_bind_cost *cost, mt_error *err)
{
    count_bytes(b);
    if (mt_log_enabled(MT_LOG_DEBUG))
        log_unused(b);
    mt_progress_end();
    bool ok = tell(b, err);
    if (ok && !b->headers_only && !mt_checkpoint_is_read_once(b->c))
        mt_binder_warm(b);
    if (cost)
        *cost = b->cost;
    mt_pool_free(b->pool);
    mt_buf_free(&b->report);
    mt_free(b->state);
    mt_free(b);
    return ok;
}

size_t mt_dtype_size(mt_dtype dtype)
{
    switch (dtype) {
    case MT_DTYPE_F32: return 4;
    case MT_DTYPE_F16:
    case MT_DTYPE_BF16: return 2;
    default: return 0;
    }
}
