/* The fallback (fallback.h). Owns a CPU device on the host's threads and, for each object, that device's copy of it. An
   operation that the backend lacks reads its arguments into their copies, is computed by the CPU device, and writes
   the copies that it may have changed back. Nothing is remembered of what a copy holds already: the backend's own
   operations change the device's memory meanwhile.

   A copy has the layout of the device's memory, and parts of a tensor have parts of its copy: so what lies between the
   rows of a part is copied with it, and stays as it is. */
#include "device/fallback.h"

#include "base/alloc.h"
#include "device/fallback_copies.h"

/* ---- an operation's arguments ---- */

static void enter_nothing(mt_fallback *f, void *at)
{
    (void)f, (void)at;
}

static void enter_device(mt_fallback *f, void *at)
{
    *(mt_device **)at = f->cpu;
}

static void enter_set(mt_fallback *f, void *at)
{
    mt_set **set = at;
    (void)f;
    *set = set_of(*set)->host;
}

static void will_write(mt_fallback *f, void (*write)(mt_fallback *f, const void *object), const void *object)
{
    assert(f->outs < MOST_ARGUMENTS);
    f->out[f->outs++] = (output){write, object};
}

/* Reads a tensor; returns its copy. */
static mt_tensor *enter_rows(mt_fallback *f, const mt_tensor *tensor)
{
    const mt_plain_tensor *t = plain(tensor);
    if (!t)
        return NULL;
    read_tensor_rows(f, t, 0, t->rows);
    return t->host;
}

static void write_tensor(mt_fallback *f, const void *object)
{
    const mt_plain_tensor *t = object;
    write_tensor_rows(f, t, 0, t->rows);
}

static void enter_input(mt_fallback *f, void *at)
{
    const mt_tensor **t = at;
    *t = enter_rows(f, *t);
}

static void enter_output(mt_fallback *f, void *at)
{
    mt_tensor **t = at;
    if (*t)
        will_write(f, write_tensor, *t);
    *t = enter_rows(f, *t);
}

static void enter_columns(mt_fallback *f, void *at)
{
    mt_columns *c = at;
    c->x = enter_rows(f, c->x);
}

static void enter_three_columns(mt_fallback *f, void *at)
{
    const mt_columns **in = at;
    for (size_t i = 0; i < 3; i++) {
        f->columns[i] = (*in)[i];
        f->columns[i].x = enter_rows(f, f->columns[i].x);
    }
    *in = f->columns;
}

static void enter_list(mt_fallback *f, void *at)
{
    const mt_index **index = at;
    const mt_plain_index *p = plain_index(*index);
    if (!p)
        return;
    read_list(f, p, p->host->count);
    *index = p->host;
}

static void enter_attention(mt_fallback *f, void *at)
{
    mt_attention *how = at;
    how->sinks = enter_rows(f, how->sinks);
    if (how->chosen)
        enter_list(f, &how->chosen);
}

static void write_list(mt_fallback *f, const void *object)
{
    const mt_plain_index *p = object;
    to_device(f, p->memory, 0, p->host->data, p->host->count * sizeof(uint32_t));
}

static void enter_list_output(mt_fallback *f, void *at)
{
    will_write(f, write_list, *(mt_index **)at);
    enter_list(f, at);
}

static void enter_weight(mt_fallback *f, void *at)
{
    const mt_weight **w = at;
    (void)f;
    *w = host_weight(*w);
}

static void enter_kv(mt_fallback *f, void *at)
{
    const mt_kv **kv = at;
    (void)f;
    *kv = plain_kv(*kv)->host;
}

static void enter_states(mt_fallback *f, void *at)
{
    const mt_states **states = at;
    (void)f;
    *states = plain_states(*states)->host;
}

static void enter_experts(mt_fallback *f, void *at)
{
    const mt_experts **e = at;
    (void)f;
    *e = host_experts(*e);
}

/* Calls fn for the pages of the step's spans from the first position on or, with `own`, from the first row's on. */
static void each_page(mt_fallback *f, const mt_plain_kv *kv, bool own,
                      void (*fn)(mt_fallback *f, const mt_plain_kv *kv, uint32_t page))
{
    const size_t tokens = kv->host->shape.page_tokens;
    for (size_t i = 0; i < f->batch.spans; i++) {
        const mt_span *s = &f->batch.span[i];
        size_t end = s->position + s->rows;
        for (size_t row = s->row; !own && f->batch.seen && row < s->row + s->rows; row++)
            end = mt_cpu_max(end, f->batch.seen[row]);
        for (size_t at = own ? s->position / tokens : 0; at * tokens < end; at++) {
            const uint32_t page = s->pages[kv->host->shape.group][at];
            if (page < kv->host->pages) /* behind a window there may be none */
                fn(f, kv, page);
        }
    }
}

static void write_pages(mt_fallback *f, const void *object)
{
    each_page(f, object, true, write_one_page);
}

static void enter_pages(mt_fallback *f, void *at)
{
    mt_kv **kv = at;
    const mt_plain_kv *p = plain_kv(*kv);
    each_page(f, p, false, read_one_page);
    will_write(f, write_pages, p);
    *kv = p->host;
}

static void copy_memo(mt_fallback *f, const mt_plain_states *st, const mt_span *s, bool back)
{
    const size_t at = s->memo * st->memo_bytes;
    if (s->guesses || s->replay) {
        if (back)
            to_device(f, st->memos, at, (uint8_t *)st->host->memo + at, st->memo_bytes);
        else
            from_device(f, st->memos, at, (uint8_t *)st->host->memo + at, st->memo_bytes);
    }
}

static void write_slots(mt_fallback *f, const void *object)
{
    for (size_t i = 0; i < f->batch.spans; i++) {
        const mt_span *s = &f->batch.span[i];
        for (size_t p = 0; p < s->pieces; p++)
            write_slot(f, object, s->piece[p].slot);
        copy_memo(f, object, s, true);
    }
}

static void enter_slots(mt_fallback *f, void *at)
{
    mt_states **states = at;
    const mt_plain_states *st = plain_states(*states);
    for (size_t i = 0; i < f->batch.spans; i++) {
        const mt_span *s = &f->batch.span[i];
        if (s->state != MT_NO_PAGE)
            read_slot(f, st, s->state);
        for (size_t p = 0; p < s->pieces; p++)
            read_slot(f, st, s->piece[p].slot);
        copy_memo(f, st, s, false);
    }
    will_write(f, write_slots, st);
    *states = st->host;
}

static void leave(mt_fallback *f)
{
    for (size_t i = 0; i < f->outs; i++)
        f->out[i].write(f, f->out[i].object);
    f->outs = 0;
}

/* clang-format off */
/* An argument is replaced by its copy. */
#define ENTER(a)                                 \
    _Generic((a),                                \
        mt_device *: enter_device,               \
        const mt_device *: enter_device,         \
        mt_set *: enter_set,                     \
        mt_tensor *: enter_output,               \
        const mt_tensor *: enter_input,          \
        mt_index *: enter_list_output,           \
        const mt_index *: enter_list,            \
        const mt_weight *: enter_weight,         \
        const mt_experts *: enter_experts,       \
        mt_kv *: enter_pages,                    \
        const mt_kv *: enter_kv,                 \
        mt_states *: enter_slots,                \
        const mt_states *: enter_states,         \
        mt_columns: enter_columns,               \
        const mt_columns *: enter_three_columns, \
        mt_attention: enter_attention,           \
        default: enter_nothing)(f, &(a));

#define ENTER_1(a) ENTER(a)
#define ENTER_2(a, ...) ENTER(a) ENTER_1(__VA_ARGS__)
#define ENTER_3(a, ...) ENTER(a) ENTER_2(__VA_ARGS__)
#define ENTER_4(a, ...) ENTER(a) ENTER_3(__VA_ARGS__)
#define ENTER_5(a, ...) ENTER(a) ENTER_4(__VA_ARGS__)
#define ENTER_6(a, ...) ENTER(a) ENTER_5(__VA_ARGS__)
#define ENTER_7(a, ...) ENTER(a) ENTER_6(__VA_ARGS__)
#define ENTER_8(a, ...) ENTER(a) ENTER_7(__VA_ARGS__)
#define ENTER_9(a, ...) ENTER(a) ENTER_8(__VA_ARGS__)
#define ENTER_10(a, ...) ENTER(a) ENTER_9(__VA_ARGS__)
#define PICK(a, b, c, d, e, g, h, i, j, k, name, ...) name
#define ENTER_ALL(...)                                                                                              \
    PICK(__VA_ARGS__, ENTER_10, ENTER_9, ENTER_8, ENTER_7, ENTER_6, ENTER_5, ENTER_4, ENTER_3, ENTER_2, ENTER_1, 0) \
    (__VA_ARGS__)
/* clang-format on */

/* on_host_NAME: the CPU device's function, on copies. For all functions; those that differ follow. */
#define CALL(result, name, parameters, arguments) \
    static void on_host_##name parameters         \
    {                                             \
        mt_fallback *f = of(dev);                 \
        ENTER_ALL arguments;                      \
        mt_cpu_##name arguments;                  \
        leave(f);                                 \
    }
MT_DEVICE_CALLS(CALL)
MT_DEVICE_OPERATIONS(CALL)
#undef CALL

#define ANSWER(result, name, parameters, arguments) \
    static result on_host_##name parameters         \
    {                                               \
        mt_fallback *f = of(dev);                   \
        ENTER_ALL arguments;                        \
        return mt_cpu_##name arguments;             \
    }
MT_DEVICE_ANSWERS(ANSWER)
#undef ANSWER

#define OBJECT(result, name, parameters, arguments) \
    static result on_host_##name parameters         \
    {                                               \
        mt_fallback *f = of(set_of(set)->head.dev); \
        ENTER_ALL arguments;                        \
        return mt_cpu_##name arguments;             \
    }
MT_DEVICE_OBJECTS(OBJECT)
#undef OBJECT

/* ---- operations with several outputs, or with tensors of which only some rows are copied: they may be huge ---- */

static void fallback_op_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count,
                               const mt_tensor *x, size_t m)
{
    mt_fallback *f = of(dev);
    mt_tensor *ys[4];
    const mt_weight *ws[4];
    assert(count <= MT_COUNT(ys));
    for (size_t i = 0; i < count; i++) {
        ys[i] = y[i];
        enter_output(f, &ys[i]);
        ws[i] = host_weight(w[i]);
    }
    mt_cpu_op_matmul(f->cpu, ys, ws, count, enter_rows(f, x), m);
    leave(f);
}

static void fallback_op_copy_row(mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from)
{
    mt_fallback *f = of(dev);
    read_tensor_rows(f, plain(x), from, 1);
    mt_cpu_op_copy_row(f->cpu, plain(y)->host, to, plain(x)->host, from);
    write_tensor_rows(f, plain(y), to, 1);
}

static void fallback_op_clear(mt_device *dev, mt_tensor *y, size_t row, size_t m)
{
    mt_fallback *f = of(dev);
    mt_cpu_op_clear(f->cpu, plain(y)->host, row, m);
    for (size_t i = 0; i < m; i++)
        write_tensor_rows(f, plain(y), row + i, 1);
}

static void fallback_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_index *index, size_t m)
{
    mt_fallback *f = of(dev);
    enter_list(f, &index);
    for (size_t i = 0; i < m; i++)
        read_tensor_rows(f, plain(x), index->data[i], 1);
    enter_output(f, &y);
    mt_cpu_op_gather(f->cpu, y, plain(x)->host, index, m);
    leave(f);
}

static void fallback_op_scatter(mt_device *dev, mt_tensor *y, const mt_index *to, size_t column, const mt_tensor *x,
                                size_t m)
{
    mt_fallback *f = of(dev);
    enter_list(f, &to);
    for (size_t i = 0; i < m; i++)
        if (to->data[i] != MT_NO_PAGE)
            read_tensor_rows(f, plain(y), to->data[i], 1);
    mt_cpu_op_scatter(f->cpu, plain(y)->host, to, column, enter_rows(f, x), m);
    for (size_t i = 0; i < m; i++)
        if (to->data[i] != MT_NO_PAGE)
            write_tensor_rows(f, plain(y), to->data[i], 1);
}

static void fallback_op_features(mt_device *dev, mt_tensor *x, const mt_tensor *features, size_t column, bool add)
{
    mt_fallback *f = of(dev);
    enter_output(f, &x);
    for (size_t i = 0; f->batch.features && i < f->batch.rows; i++)
        if (f->batch.features[i] != MT_NO_PAGE)
            read_tensor_rows(f, plain(features), f->batch.features[i], 1);
    mt_cpu_op_features(f->cpu, x, plain(features)->host, column, add);
    leave(f);
}

static void fallback_op_kv_copy(mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from)
{
    mt_fallback *f = of(dev);
    read_one_page(f, plain_kv(kv), from);
    mt_cpu_op_kv_copy(f->cpu, plain_kv(kv)->host, to, from);
    write_one_page(f, plain_kv(kv), to);
}

/* ---- steps ---- */

static void fallback_step_begin(mt_device *dev, const mt_batch *batch)
{
    mt_fallback *f = of(dev);
    f->batch = *batch;
    mt_cpu_step_begin(f->cpu, batch);
    if (f->own->step_begin)
        f->own->step_begin(dev, batch);
}

static bool fallback_device_plan(mt_device *dev, size_t rows, mt_error *err)
{
    mt_fallback *f = of(dev);
    return mt_cpu_device_plan(f->cpu, rows, err) && (!f->own->device_plan || f->own->device_plan(dev, rows, err));
}

/* ---- properties ---- */

static bool fallback_device_well(const mt_device *dev, mt_error *err)
{
    const mt_fallback *f = of(dev);
    if (f->lost)
        return mt_fail(err, MT_E_MEMORY, "the device \"%s\" has no memory left; lower --memory", f->own->name);
    return !f->own->device_well || f->own->device_well(dev, err);
}

static bool renew(mt_device *dev, mt_error *err)
{
    mt_fallback *f = of(dev);
    f->lost = false;
    return !f->own->renew || f->own->renew(dev, err);
}

static bool fallback_device_apart(const mt_device *dev)
{
    (void)dev;
    return true;
}

static uint64_t fallback_device_bytes(const mt_device *dev)
{
    return of(dev)->bytes;
}

/* ---- the table ---- */

/* What is not on_host_NAME. */
static const mt_backend others = {.step_begin = fallback_step_begin,
                                  .device_plan = fallback_device_plan,
                                  .device_well = fallback_device_well,
                                  .device_apart = fallback_device_apart,
                                  .device_bytes = fallback_device_bytes,
                                  .op_matmul = fallback_op_matmul,
                                  .op_copy_row = fallback_op_copy_row,
                                  .op_clear = fallback_op_clear,
                                  .op_gather = fallback_op_gather,
                                  .op_scatter = fallback_op_scatter,
                                  .op_features = fallback_op_features,
                                  .op_kv_copy = fallback_op_kv_copy};

bool mt_fallback_unneeded(const mt_backend *b)
{
    bool all = b->set_new && b->set_free && b->renew;
#define HAS(result, name, parameters, arguments) all = all && b->name;
    MT_DEVICE_OBJECTS(HAS)
    MT_DEVICE_ANSWERS(HAS)
    MT_DEVICE_CALLS(HAS)
    MT_DEVICE_OPERATIONS(HAS)
#undef HAS
    return all;
}

bool mt_fallback_begin(mt_device *dev, const mt_device_params *params, mt_error *err)
{
    mt_device_head *head = (mt_device_head *)dev;
    mt_device_params host = *params;
    if (params->ranks)
        return mt_fail(err, MT_E_UNSUPPORTED, "the device \"%s\" does not compute with other ranks; use --device cpu",
                       head->backend->name);
    host.name = "cpu";
    mt_device *cpu = mt_backend_cpu.open(&host, head->host, err);
    if (!cpu)
        return false;
    if (cpu->k.cpu & head->backend->without)
        mt_kernels_init(&cpu->k, cpu->k.cpu & ~head->backend->without);
    mt_fallback *f = mt_alloc(sizeof(*f));
    *f = (mt_fallback){.table = *head->backend, .own = head->backend, .dev = dev, .cpu = cpu};
    /* these call the backend's own, too */
    f->table.step_begin = NULL;
    f->table.device_plan = NULL;
    f->table.device_well = NULL;
    f->table.weight_new = NULL;
    f->table.experts_new = NULL;
    f->table.renew = renew;
    f->table.set_new = mt_fallback_objects.set_new;
    f->table.set_free = mt_fallback_objects.set_free;
#define FILL(result, name, parameters, arguments) \
    if (!f->table.name)                           \
        f->table.name = mt_fallback_objects.name; \
    if (!f->table.name)                           \
        f->table.name = others.name;              \
    if (!f->table.name)                           \
        f->table.name = on_host_##name;
    MT_DEVICE_OBJECTS(FILL)
    MT_DEVICE_ANSWERS(FILL)
    MT_DEVICE_CALLS(FILL)
    MT_DEVICE_OPERATIONS(FILL)
#undef FILL
#define ALL(result, name, parameters, arguments) f->all.name = others.name ? others.name : on_host_##name;
    MT_DEVICE_OPERATIONS(ALL)
#undef ALL
    assert(mt_fallback_unneeded(&f->table));
    head->fallback = f;
    head->backend = &f->table;
    return true;
}

void mt_fallback_end(mt_fallback *f)
{
    if (f)
        mt_backend_cpu.close(f->cpu);
    mt_free(f);
}

const mt_backend *mt_fallback_host(const mt_device *dev)
{
    return &of(dev)->all;
}

const mt_backend *mt_fallback_backend(const mt_fallback *f)
{
    return f->own;
}
