/* The CPU device: runs kernels on the host's threads. Owns every tensor, page and scratch buffer; used by one thread.

   Invariants:
   1. Work is divided by rows, columns, heads and segments, never over the summed dimension, so the division changes no
      bit (R1).
   2. After mt_device_plan nothing allocates.
   3. Padding of tensors beyond `cols` is zero and stays zero: operations write cols elements of a row.
   4. Its memory is the host's, so readings and sendings are complete at once. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/cpu/cpu.h"
#include "device/limits.h"
#include "ranks/ranks.h"

/* ---- the device ---- */

static mt_device *open_cpu(const mt_device_params *params, mt_host *host, mt_error *err)
{
    if (params->numerics == MT_NUMERICS_NATIVE && (!params->name || strcmp(params->name, "auto") == 0)) {
        mt_fail(err, MT_E_UNSUPPORTED,
                "--arithmetic native is for NVIDIA GPUs of compute capability 9.0, and there is none; leave it out, or "
                "give --device cpu to compute the same, slowly");
        return NULL;
    }
    const bool sm90 = params->numerics == MT_NUMERICS_SM90 || params->numerics == MT_NUMERICS_SM90_PORTABLE;
    const bool native = params->numerics == MT_NUMERICS_NATIVE || params->numerics == MT_NUMERICS_SM90;
    if ((native || sm90) && params->ranks) {
        mt_fail(err, MT_E_UNSUPPORTED, "several ranks compute with --arithmetic portable only; leave the other out");
        return NULL;
    }
    mt_device *dev = mt_alloc(sizeof(*dev));
    char features[96];
    dev->head = (mt_device_head){.backend = &mt_backend_cpu,
                                 .host = host,
                                 .precision = params->precision,
                                 .kv_bits = params->kv_bits,
                                 .numerics = native ? MT_NUMERICS_NATIVE : MT_NUMERICS_PORTABLE,
                                 .ranks = params->ranks};
    dev->k = *mt_host_kernels(host);
    dev->sm90 = sm90;
    if (sm90)
        mt_cpu_sm90_overlay(&dev->k);
    snprintf(dev->name, sizeof(dev->name), "cpu (%s), %zu thread%s%s",
             mt_cpu_names(dev->k.cpu, features, sizeof(features)), mt_host_threads(host),
             mt_host_threads(host) == 1 ? "" : "s", sm90 ? ", adding as sm_90" : "");
    if (params->ranks)
        snprintf(dev->name + strlen(dev->name), sizeof(dev->name) - strlen(dev->name), ", rank %zu of %zu",
                 mt_ranks_own(params->ranks), mt_ranks_count(params->ranks));
    return dev;
}

static void close_cpu(mt_device *dev)
{
    if (dev->plan)
        mt_cpu_set_free(dev->plan);
    assert(!dev->sets);
    mt_free(dev);
}

static const char *describe(const mt_device *dev)
{
    return dev->name;
}

static bool renew(mt_device *dev, mt_error *err)
{
    return mt_cpu_device_well(dev, err);
}

/* The device itself does not fail, but other ranks can. */
bool mt_cpu_device_well(const mt_device *dev, mt_error *err)
{
    return !dev->head.ranks || mt_ranks_well(dev->head.ranks, err);
}

bool mt_cpu_device_apart(const mt_device *dev)
{
    (void)dev;
    return false;
}

size_t mt_cpu_device_few(const mt_device *dev)
{
    (void)dev;
    return 0;
}

bool mt_cpu_device_ahead(const mt_device *dev)
{
    (void)dev;
    return false;
}

uint64_t mt_cpu_device_bytes(const mt_device *dev)
{
    return dev->bytes;
}

uint64_t mt_cpu_device_memory(const mt_device *dev)
{
    (void)dev;
    return mt_host_memory();
}

size_t mt_cpu_device_rows(const mt_device *dev)
{
    (void)dev;
    return 512;
}

uint32_t mt_cpu_device_fingerprint(const mt_device *dev)
{
    return mt_rules_fingerprint(&(mt_way){.version = MT_NUMERICS_VERSION,
                                          .level = dev->sm90 ? MT_SM90 : mt_kernels_r5_level(&dev->k),
                                          .native = dev->head.numerics == MT_NUMERICS_NATIVE,
                                          .kv_bits = dev->head.kv_bits,
                                          .precision = dev->head.precision});
}

void mt_cpu_device_enter(mt_device *dev)
{
    (void)dev;
}

void mt_cpu_device_wait(mt_device *dev)
{
    (void)dev;
}

void mt_cpu_op_share(mt_device *dev, mt_tensor *x, size_t slices, size_t m, bool all)
{
    if (dev->head.ranks)
        mt_ranks_share(dev->head.ranks, x->data, x->stride, x->cols, slices, m, all);
}

void mt_cpu_step_begin(mt_device *dev, const mt_batch *batch)
{
    dev->batch = *batch;
    if (!batch->chooser)
        return;
    for (size_t i = 0; i < batch->rows; i++)
        dev->tokens[i] = batch->chosen[i] == MT_NO_PAGE ? batch->tokens[i] : batch->chooser->token[batch->chosen[i]];
    dev->batch.tokens = dev->tokens;
}

/* ---- the plan ---- */

/* The most bytes that a block of packed rows can need, over all group sizes. */
static size_t block_bytes(const mt_device *dev)
{
    static const size_t groups[] = {16, 32, 64, 128};
    size_t bytes = dev->k.b_rows_bytes(MT_CPU_ROW_BLOCK, dev->needs.k);
    for (size_t i = 0; i < MT_COUNT(groups); i++)
        bytes = mt_cpu_max(bytes, dev->k.q_rows_bytes(MT_CPU_ROW_BLOCK, mt_cpu_up(dev->needs.k, 128), groups[i]));
    bytes = mt_cpu_max(bytes, MT_CPU_ROW_BLOCK * mt_cpu_sm90_row_bytes(dev->needs.k));
    return mt_cpu_up(bytes, 64);
}

static mt_cpu_needs sum_needs(const mt_device *dev)
{
    mt_cpu_needs n = {0};
    for (const mt_set *s = dev->sets; s; s = s->next) {
        n.k = mt_cpu_max(n.k, s->needs.k);
        n.head_stride = mt_cpu_max(n.head_stride, s->needs.head_stride);
        n.query = mt_cpu_max(n.query, s->needs.query);
        n.widened |= s->needs.widened;
        n.top = mt_cpu_max(n.top, s->needs.top);
        n.compared = mt_cpu_max(n.compared, s->needs.compared);
        n.experts = mt_cpu_max(n.experts, s->needs.experts);
        n.top_k = mt_cpu_max(n.top_k, s->needs.top_k);
        n.hidden = mt_cpu_max(n.hidden, s->needs.hidden);
        n.inner = mt_cpu_max(n.inner, s->needs.inner);
    }
    return n;
}

bool mt_cpu_device_plan(mt_device *dev, size_t rows, mt_error *err)
{
    if (rows == 0 || rows > MT_LIMIT_BATCH_ROWS)
        return mt_fail(err, MT_E_TOO_LARGE, "a step of %zu rows; between 1 and %d are allowed", rows,
                       MT_LIMIT_BATCH_ROWS);
    const mt_kernels *k = &dev->k;
    if (dev->plan)
        mt_cpu_set_free(dev->plan);
    dev->needs = sum_needs(dev);
    dev->plan = mt_cpu_set_new(dev);
    dev->rows = rows;
    dev->tokens = mt_cpu_alloc(dev->plan, rows * sizeof(*dev->tokens));
    dev->packed_block = block_bytes(dev);
    dev->packed = mt_cpu_alloc(dev->plan, (rows + MT_CPU_ROW_BLOCK - 1) / MT_CPU_ROW_BLOCK * dev->packed_block);
    size_t scratch = mt_cpu_max(k->q_scratch_bytes(dev->needs.k), k->b_scratch_bytes(dev->needs.k));
    scratch = mt_cpu_max(scratch, k->f_scratch_bytes(dev->needs.k));
    scratch = mt_cpu_max(scratch, mt_cpu_sm90_scratch(dev->needs.k));
    scratch = mt_cpu_heads_scratch(dev, scratch);
    scratch = mt_cpu_max(scratch, mt_cpu_choice_scratch(dev));
    dev->scratch_bytes = mt_cpu_up(mt_cpu_max(scratch, mt_cpu_attention_scratch(dev)), 64);
    dev->scratch = mt_cpu_alloc(dev->plan, mt_host_threads(dev->head.host) * dev->scratch_bytes);
    mt_cpu_plan_attention(dev);
    mt_cpu_plan_choice(dev);
    mt_cpu_plan_moe(dev);
    return true;
}

const mt_backend mt_backend_cpu = {.name = "cpu",
                                   .open = open_cpu,
                                   .close = close_cpu,
                                   .renew = renew,
                                   .describe = describe,
                                   .set_new = mt_cpu_set_new,
                                   .set_free = mt_cpu_set_free,
#define FIELD(result, name, parameters, arguments) .name = mt_cpu_##name,
                                   MT_DEVICE_OBJECTS(FIELD) MT_DEVICE_ANSWERS(FIELD) MT_DEVICE_CALLS(FIELD)
                                       MT_DEVICE_OPERATIONS(FIELD)
#undef FIELD
};
