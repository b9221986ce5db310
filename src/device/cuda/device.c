/* The CUDA device: runs kernels on one stream of one GPU. Owns its memory there; used by one thread at a time.

   Everything is enqueued on one stream, and so runs in order; the host waits only for readings. Copies that no step
   needs run on a second stream (host/aside.c). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "device/cuda/cuda.h"
#include "device/limits.h"

/* ---- sets ---- */

static mt_set *set_new(mt_device *dev)
{
    mt_set *set = mt_alloc(sizeof(*set));
    set->head.dev = dev;
    set->arena = mt_arena_new(0);
    set->next = dev->sets;
    set->link = &dev->sets;
    if (set->next)
        set->next->link = &set->next;
    dev->sets = set;
    return set;
}

static void set_free(mt_set *set)
{
    mt_device *dev = set->head.dev;
    if (dev->failed && dev->context)
        (void)dev->cu.context_use(dev->context); /* this may be what failed */
    mt_cuda_do(dev, "wait", stream_wait, mt_cuda_stream(dev));
    mt_cuda_aside_wait(dev);
    *set->link = set->next;
    if (set->next)
        set->next->link = set->link;
    dev->bytes -= set->bytes;
    mt_arena_free(set->arena);
    mt_free(set);
}

/* ---- the device ---- */

static mt_device *open_cuda(const mt_device_params *params, mt_host *host, mt_error *err)
{
    if (params->ranks) {
        mt_fail(err, MT_E_NOT_FOUND, "several ranks compute on the CPU only; give --device cpu, or start one process");
        return NULL;
    }
    mt_device *dev = mt_alloc(sizeof(*dev));
    dev->head = (mt_device_head){.backend = &mt_backend_cuda,
                                 .host = host,
                                 .precision = params->precision,
                                 .kv_bits = params->kv_bits,
                                 .numerics = params->numerics};
    dev->number = params->number;
    dev->fusions = mt_cuda_fusions;
    if (mt_cuda_open_gpu(dev, err))
        return dev;
    mt_free(dev);
    return NULL;
}

/* Any thread may call this: it makes the context current first. */
static void let_go(mt_device *dev)
{
    if (dev->context)
        (void)dev->cu.context_use(dev->context);
    if (dev->plan)
        set_free(dev->plan);
    assert(!dev->sets);
    mt_cuda_close_gpu(dev);
}

static void close_cuda(mt_device *dev)
{
    let_go(dev);
    mt_free(dev);
}

static bool renew(mt_device *dev, mt_error *err)
{
    let_go(dev);
    return mt_cuda_open_gpu(dev, err);
}

static const char *describe(const mt_device *dev)
{
    return dev->name;
}

bool mt_cuda_device_apart(const mt_device *dev)
{
    (void)dev;
    return true;
}

size_t mt_cuda_device_few(const mt_device *dev)
{
    (void)dev;
    return MT_CUDA_FEW_ROWS;
}

bool mt_cuda_device_ahead(const mt_device *dev)
{
    return dev->ways.ahead;
}

uint64_t mt_cuda_device_bytes(const mt_device *dev)
{
    return dev->bytes;
}

uint64_t mt_cuda_device_memory(const mt_device *dev)
{
    return dev->memory;
}

size_t mt_cuda_device_rows(const mt_device *dev)
{
    (void)dev;
    return 4096; /* products of them have several tiles for each multiprocessor of the largest cards */
}

uint32_t mt_cuda_device_fingerprint(const mt_device *dev)
{
    return mt_rules_fingerprint(&(mt_way){.version = MT_NUMERICS_VERSION,
                                          .level = (unsigned)dev->code,
                                          .native = dev->head.numerics == MT_NUMERICS_NATIVE,
                                          .kv_bits = dev->head.kv_bits,
                                          .precision = dev->head.precision});
}

/* The driver has a current context for each thread. */
void mt_cuda_device_enter(mt_device *dev)
{
    if (dev->context)
        mt_cuda_ok(dev, dev->cu.context_use(dev->context), "be used by another thread");
}

/* ---- the plan ---- */

static mt_cuda_needs sum_needs(const mt_device *dev)
{
    mt_cuda_needs n = {0};
    for (const mt_set *s = dev->sets; s; s = s->next) {
        n.k = s->needs.k > n.k ? s->needs.k : n.k;
        n.top_k = s->needs.top_k > n.top_k ? s->needs.top_k : n.top_k;
        n.experts = s->needs.experts > n.experts ? s->needs.experts : n.experts;
        n.hidden = s->needs.hidden > n.hidden ? s->needs.hidden : n.hidden;
        n.inner = s->needs.inner > n.inner ? s->needs.inner : n.inner;
        n.decoded = s->needs.decoded > n.decoded ? s->needs.decoded : n.decoded;
    }
    return n;
}

static mt_cuda_mat plan_matrix(mt_device *dev, size_t rows, size_t cols)
{
    const size_t stride = mt_cuda_up(cols, 32);
    return (mt_cuda_mat){.data = mt_cuda_memory(dev->plan, rows * stride * sizeof(float)),
                         .rows = (uint32_t)rows,
                         .cols = (uint32_t)cols,
                         .stride = stride};
}

/* Allocates the memory of packed rows, which has room for all rows and, with the widths of experts, for sorted pairs of
   rows and experts. places: of these pairs; tiled: the same for `native`, whose tiles have rows of one expert each. */
static void plan_packed(mt_device *dev, const mt_cuda_needs *needs, size_t rows, size_t places, size_t tiled)
{
    const size_t inside = needs->hidden > needs->inner ? needs->hidden : needs->inner;
    const size_t inner = mt_cuda_up(needs->inner, MT_NATIVE_CHUNK), wide = mt_cuda_up(inside, MT_NATIVE_CHUNK);
    const size_t plain = (rows + 8 + MT_CUDA_SLACK) * mt_cuda_up(needs->k, MT_NATIVE_CHUNK);
    const size_t sorted = MT_MAX((places + MT_CUDA_SLACK) * mt_cuda_up(inside, MT_CUDA_STEP), tiled * wide);
    const size_t elements = plain > sorted ? plain : sorted, steps = elements / MT_CUDA_STEP;
    const size_t few = mt_cuda_up(rows < MT_CUDA_FEW_ROWS ? rows : MT_CUDA_FEW_ROWS, 64);
    const size_t gated = MT_MAX(few * mt_cuda_up(needs->k, MT_NATIVE_CHUNK), tiled * inner);
    dev->packed_any = (mt_cuda_packed){.q = mt_cuda_memory(dev->plan, elements * sizeof(uint16_t)),
                                       .turns = mt_cuda_memory(dev->plan, steps * 4 * sizeof(float)),
                                       .sums = mt_cuda_memory(dev->plan, steps * 8 * sizeof(float))};
    dev->packed = dev->packed_any;
    /* 2.5 bytes an element: for codes with scales, for bf16, and for whole tiles of `native` with their units */
    dev->packed_gated = mt_cuda_memory(dev->plan, gated * 5 / 2);
}

bool mt_cuda_device_plan(mt_device *dev, size_t rows, mt_error *err)
{
    if (rows == 0 || rows > MT_LIMIT_BATCH_ROWS)
        return mt_fail(err, MT_E_TOO_LARGE, "a step of %zu rows; between 1 and %d are allowed", rows,
                       MT_LIMIT_BATCH_ROWS);
    if (dev->plan)
        set_free(dev->plan);
    const mt_cuda_needs needs = sum_needs(dev);
    const size_t pairs = rows * needs.top_k, places = mt_cuda_places(pairs, needs.experts);
    dev->plan = set_new(dev);
    dev->rows = rows;
    plan_packed(dev, &needs, rows, places,
                dev->head.numerics == MT_NUMERICS_NATIVE ? mt_cuda_native_places(pairs, needs.experts) : 0);
    dev->parts = mt_cuda_memory(dev->plan, MT_CUDA_PARTS);
    dev->decoded_bytes = rows > MT_CUDA_FEW_ROWS ? MT_MIN(needs.decoded, MT_CUDA_NATIVE_SCRATCH) : 0;
    dev->decoded = dev->decoded_bytes ? mt_cuda_memory(dev->plan, dev->decoded_bytes) : 0;
    dev->counts = mt_cuda_memory(dev->plan, MT_CUDA_COUNTS * sizeof(uint32_t));
    if (needs.top_k) {
        dev->expert = mt_cuda_memory(dev->plan, pairs * sizeof(uint32_t));
        dev->place = mt_cuda_memory(dev->plan, pairs * sizeof(uint32_t));
        dev->weight = mt_cuda_memory(dev->plan, pairs * sizeof(float));
        dev->row = mt_cuda_memory(dev->plan, places * sizeof(uint32_t));
        dev->share = mt_cuda_memory(dev->plan, places * sizeof(mt_cuda_share));
        dev->share_count = mt_cuda_memory(dev->plan, sizeof(uint32_t));
        dev->arrived = mt_cuda_memory(dev->plan, (1 + MT_CUDA_ROUTED) * sizeof(uint32_t));
        dev->gate = plan_matrix(dev, places, needs.inner);
        dev->up = plan_matrix(dev, places, needs.inner);
        dev->down = plan_matrix(dev, places, needs.hidden);
    }
    return mt_cuda_device_well(dev, err);
}

/* ---- the step ---- */

/* Places parts of a step one behind the other, in staged memory and at the same offset on the device. */
typedef struct layer_out {
    uint8_t *host;
    CUdeviceptr device;
    size_t used;
} layer_out;

/* Moves past bytes that the caller writes, up to a multiple of 16; zeroes the padding, which send_step compares. */
static void skip(layer_out *out, size_t bytes)
{
    const size_t up = mt_cuda_up(bytes, 16);
    memset(out->host + out->used + bytes, 0, up - bytes);
    out->used += up;
}

/* Copies data, and returns where it will be on the device; 0 where there is none. */
static CUdeviceptr lay(layer_out *out, const void *data, size_t bytes)
{
    if (!data)
        return 0;
    memcpy(out->host + out->used, data, bytes);
    const CUdeviceptr at = out->device + out->used;
    skip(out, bytes);
    return at;
}

/* Pages of a span's table that are needed: those of its rows, and of what these see beyond. */
static size_t span_pages(const mt_batch *b, const mt_span *s)
{
    size_t end = s->position + s->rows;
    for (size_t i = s->row; b->seen && i < s->row + s->rows; i++)
        end = b->seen[i] > end ? b->seen[i] : end;
    return (end + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
}

static size_t step_bytes(const mt_batch *b)
{
    size_t bytes = 1024 + b->rows * 36 + b->spans * sizeof(mt_cuda_span) + MT_CUDA_PAGES_FIRST * sizeof(uint32_t);
    for (size_t i = 0; i < b->spans; i++)
        bytes +=
            MT_KV_GROUPS * span_pages(b, &b->span[i]) * sizeof(uint32_t) + b->span[i].pieces * sizeof(mt_cuda_piece);
    return bytes;
}

/* Appends the page tables of a span to the `count` pages before, and notes in d->pages where each begins. Returns the
   new count. */
static size_t lay_pages(uint32_t *pages, size_t count, const mt_batch *b, const mt_span *s, mt_cuda_span *d)
{
    const size_t n = span_pages(b, s);
    for (size_t g = 0; g < MT_KV_GROUPS; g++) {
        d->pages[g] = (uint32_t)count;
        if (!s->pages[g])
            continue;
        memcpy(pages + count, s->pages[g], n * sizeof(*pages));
        count += n;
    }
    return count;
}

/* Copies a step's data to the device, unless the last step had the same bytes, as the passes of a tower have: then the
   device has them already, and without a copy between them the kernels of both steps are in one list. */
static void send_step(mt_device *dev, const layer_out *out, size_t staged)
{
    if (dev->step_staged && dev->step_bytes == out->used && memcmp(dev->step_staged, out->host, out->used) == 0) {
        dev->staged -= mt_cuda_up(staged, 64);
        return;
    }
    mt_cuda_flush(dev, out->device, out->host, out->used);
    dev->step_staged = out->host;
    dev->step_bytes = out->used;
}

void mt_cuda_step_begin(mt_device *dev, const mt_batch *b)
{
    const size_t bytes = step_bytes(b);
    assert(bytes <= MT_CUDA_STAGING);
    layer_out out = {.host = mt_cuda_stage(dev, bytes), .device = dev->step_memory};
    mt_cuda_step *step = &dev->step;
    dev->batch = b;
    *step = (mt_cuda_step){.rows = (uint32_t)b->rows, .spans = (uint32_t)b->spans};
    step->tokens = lay(&out, b->tokens, b->rows * sizeof(*b->tokens));
    /* `from` takes its room even without a chooser, so that the offsets of what follows do not depend on one */
    const mt_cuda_follow follow = {.tokens = step->tokens,
                                   .chosen = b->chooser ? b->chooser->best : 0,
                                   .from = lay(&out, b->chooser ? b->chosen : b->tokens, b->rows * sizeof(*b->chosen)),
                                   .m = step->rows};
    step->positions = lay(&out, b->positions, b->rows * sizeof(*b->positions));
    step->features = lay(&out, b->features, b->rows * sizeof(*b->features));
    step->seen_from = lay(&out, b->seen_from, b->rows * sizeof(*b->seen_from));
    step->seen = lay(&out, b->seen, b->rows * sizeof(*b->seen));
    uint32_t *span_of = (uint32_t *)(void *)(out.host + out.used);
    step->span_of = out.device + out.used;
    skip(&out, b->rows * sizeof(*span_of));
    mt_cuda_span *span = (mt_cuda_span *)(void *)(out.host + out.used);
    step->span = out.device + out.used;
    skip(&out, b->spans * sizeof(*span));
    mt_cuda_piece *piece = (mt_cuda_piece *)(void *)(out.host + out.used);
    step->piece = out.device + out.used;
    size_t pieces = 0, pages = 0;
    for (size_t i = 0; i < b->spans; i++) {
        const mt_span *s = &b->span[i];
        span[i] = (mt_cuda_span){.row = s->row,
                                 .rows = s->rows,
                                 .position = s->position,
                                 .state = s->state,
                                 .piece = (uint32_t)pieces,
                                 .pieces = s->pieces,
                                 .guesses = s->guesses,
                                 .memo = s->memo,
                                 .replay = s->replay};
        for (size_t r = 0; r < s->rows; r++)
            span_of[s->row + r] = (uint32_t)i;
        for (size_t p = 0; p < s->pieces; p++)
            piece[pieces++] = (mt_cuda_piece){s->piece[p].rows, s->piece[p].slot};
    }
    skip(&out, pieces * sizeof(*piece));
    step->pages = out.device + out.used;
    for (size_t i = 0; i < b->spans; i++)
        pages = lay_pages((uint32_t *)(void *)(out.host + out.used), pages, b, &b->span[i], &span[i]);
    for (; pages < MT_CUDA_PAGES_FIRST; pages++)
        ((uint32_t *)(void *)(out.host + out.used))[pages] = 0;
    out.used += pages * sizeof(uint32_t);
    assert(out.used <= bytes);
    send_step(dev, &out, bytes);
    if (b->chooser) {
        mt_cuda_launch(dev, MT_K_follow, 1, 1, 1, 1024, 0, &follow);
        dev->step_staged = NULL; /* the kernel changes the tokens, so the device no longer has what was staged */
    }
}

const mt_backend mt_backend_cuda = {.name = "cuda",
                                    .open = open_cuda,
                                    .close = close_cuda,
                                    .renew = renew,
                                    .describe = describe,
                                    .set_new = set_new,
                                    .set_free = set_free,
#define FIELD(result, name, parameters, arguments) .name = mt_cuda_##name,
                                    MT_DEVICE_OBJECTS(FIELD) MT_DEVICE_ANSWERS(FIELD) MT_DEVICE_CALLS(FIELD)
                                        MT_DEVICE_OPERATIONS(FIELD)
#undef FIELD
};
