/* Starts kernels on the GPU.

   A launch takes the host some microseconds and leaves the GPU idle for one or two, and a decode step has hundreds. So
   launches are collected in a list and started together, when the list is full or something else needs the stream
   (mt_cuda_stream). Between two lists a kernel waits for all of the one before it; so a list has room for a step of
   most models. But where the GPU has nothing to do, it gets the first kernels as soon as there are some. The list has
   three uses:

   1. Neighbours become one kernel: before a kernel is listed, the patterns of fusion.c are held against it and the last
      ones of the list.
   2. A list that is equal to an earlier one, byte by byte, is replayed as a graph of the driver, in one call. What
      differs between two steps with equally many rows (tokens, positions, pages) is in device memory, always at the
      same address, and not in the parameters; so the steps of answers give equal lists. Nothing has to be declared:
      equality decides.
   3. A kernel that waits for the one before it by itself (griddepcontrol.wait) is started while that one still runs,
      and meanwhile loads what does not depend on it.

   Lists of prompts and pictures are long and differ, and become no graphs: their kernels are launched one by one, while
   later ones are listed, and only the last KEPT stay in the list, for neighbours to come. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cuda/cuda.h"

enum {
    CALLS = 512,              /* most calls of a list */
    FIRST = 24,               /* most calls of a list while the GPU is idle: they take it longer than others the host */
    KEPT = 8,                 /* calls that stay in a list of which no graph is made */
    PARAMETERS = CALLS * 640, /* bytes of their parameters */
    LISTS = 96                /* lists that are remembered: some for every number of rows */
};

typedef struct call_list {
    uint32_t count, used; /* calls, bytes of parameters */
    mt_cuda_call call[CALLS];
    _Alignas(16) uint8_t parameters[PARAMETERS];
} call_list;

/* A list that was seen before, and its graph once it was seen again. */
typedef struct seen {
    CUgraphExec graph;
    uint64_t last; /* time of its last use; 0: never */
    call_list list;
} seen;

struct mt_cuda_launcher {
    CUstream stream;
    bool graphs;                   /* false: the driver failed to make a graph, or graphs are switched off */
    bool idle;                     /* nothing was started since the GPU was seen to have nothing to do */
    uint64_t now;                  /* counts uses */
    size_t next;                   /* where the list is looked for first */
    bool fusing;                   /* a fusion changes the list: what it lists is not held against patterns again */
    size_t fused[MT_CUDA_FUSIONS]; /* how often, by fusion */
    call_list list;
    seen seen[LISTS];
};

bool mt_cuda_launcher_open(mt_device *dev, mt_error *err)
{
    mt_cuda_launcher *l = dev->launcher = mt_alloc(sizeof(*l));
    const CUresult error = dev->cu.stream_new(&l->stream, MT_CU_STREAM_NON_BLOCKING);
    l->graphs = dev->ways.graphs;
    return !error || mt_fail(err, MT_E_IO, "%s cannot be used: %s", dev->name, mt_cuda_driver_text(&dev->cu, error));
}

void mt_cuda_launcher_close(mt_device *dev)
{
    mt_cuda_launcher *l = dev->launcher;
    if (!l)
        return;
    for (size_t i = 0; i < LISTS; i++)
        if (l->seen[i].graph)
            (void)dev->cu.graph_exec_free(l->seen[i].graph);
    if (l->stream)
        (void)dev->cu.stream_free(l->stream);
    mt_free(l);
}

/* ---- what is launched ---- */

/* Kernels that wait for the one before by themselves. */
static bool waits(mt_cuda_kernel kernel)
{
    enum { LATE, EARLY };
    static const bool does[MT_K_COUNT] = {
#define WAITS(name, family, start) [MT_K_##name] = (start) == EARLY,
        MT_CUDA_KERNELS(WAITS)
#undef WAITS
    };
    return does[kernel];
}

static uint64_t family_of(mt_cuda_kernel kernel)
{
    static const uint8_t families[MT_K_COUNT] = {
#define FAMILY(name, family, start) [MT_K_##name] = MT_F_##family,
        MT_CUDA_KERNELS(FAMILY)
#undef FAMILY
    };
    return 1ull << families[kernel];
}

static CUresult start(mt_device *dev, const mt_cuda_call *c, const uint8_t *parameters)
{
    CUlaunchAttribute attributes[2] = {{0}};
    unsigned count = 0;
    if (dev->code >= 90 && dev->ways.early && waits(c->kernel))
        attributes[count++] = (CUlaunchAttribute){.id = MT_CU_LAUNCH_PROGRAMMATIC, .value.allowed = 1};
    if (c->cluster > 1)
        attributes[count++] = (CUlaunchAttribute){.id = MT_CU_LAUNCH_CLUSTER, .value.cluster = {c->cluster, 1, 1}};
    CUlaunchConfig config = {.grid = {c->grid[0], c->grid[1], c->grid[2]},
                             .block = {c->threads, 1, 1},
                             .shared = c->shared,
                             .stream = dev->launcher->stream,
                             .attributes = attributes,
                             .attribute_count = count};
    /* the driver copies it */
    size_t size = c->size;
    void *parameter[] = {MT_CU_PARAMETER_AT, (void *)(uintptr_t)(parameters + c->at), MT_CU_PARAMETER_SIZE, &size,
                         MT_CU_PARAMETER_END};
    return dev->cu.launch(&config, dev->kernel[c->kernel], NULL, parameter);
}

static void start_some(mt_device *dev, const call_list *list, uint32_t count)
{
    CUresult error = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = start(dev, &list->call[i], list->parameters);
    (void)mt_cuda_ok(dev, error, "start a kernel");
}

/* Whether equal lists of the present step are to become graphs. */
static bool replays(const mt_device *dev)
{
    return dev->launcher->graphs && dev->step.rows <= MT_CUDA_GRAPH_ROWS;
}

/* Starts all calls but the last KEPT, which move to the front. */
static void start_front(mt_device *dev)
{
    mt_cuda_launcher *l = dev->launcher;
    call_list *list = &l->list;
    const uint32_t count = list->count - KEPT, at = list->call[count].at;
    start_some(dev, list, count);
    l->idle = false;
    memmove(list->call, list->call + count, KEPT * sizeof(*list->call));
    memmove(list->parameters, list->parameters + at, list->used - at);
    for (uint32_t i = 0; i < KEPT; i++)
        list->call[i].at -= at;
    list->count = KEPT;
    list->used -= at;
}

static bool same(const call_list *a, const call_list *b)
{
    return a->count == b->count && a->used == b->used && memcmp(a->call, b->call, a->count * sizeof(*a->call)) == 0 &&
           memcmp(a->parameters, b->parameters, a->used) == 0;
}

/* The entry of the list, or the one to replace: the least recently used. */
static seen *find(mt_cuda_launcher *l, bool *there)
{
    seen *oldest = l->seen;
    *there = true;
    for (size_t i = 0; i < LISTS; i++) {
        seen *s = &l->seen[(l->next + i) % LISTS];
        if (s->last && same(&s->list, &l->list))
            return s;
        oldest = s->last < oldest->last ? s : oldest;
    }
    *there = false;
    return oldest;
}

static void remember(mt_device *dev, seen *s, const call_list *list)
{
    if (s->graph)
        mt_cuda_ok(dev, dev->cu.graph_exec_free(s->graph), "forget a graph");
    s->graph = NULL;
    s->list.count = list->count;
    s->list.used = list->used;
    memcpy(s->list.call, list->call, list->count * sizeof(*list->call));
    memcpy(s->list.parameters, list->parameters, list->used);
}

/* After a failure, no further graphs are tried. */
static void make_graph(mt_device *dev, seen *s)
{
    mt_cuda_launcher *l = dev->launcher;
    CUgraph graph = NULL;
    CUresult error = dev->cu.capture_begin(l->stream, MT_CU_CAPTURE_RELAXED);
    for (uint32_t i = 0; i < s->list.count && !error; i++)
        error = start(dev, &s->list.call[i], s->list.parameters);
    const CUresult end = dev->cu.capture_end(l->stream, &graph);
    error = error ? error : end;
    if (!error)
        error = dev->cu.graph_instantiate(&s->graph, graph, 0);
    if (graph)
        (void)dev->cu.graph_free(graph);
    if (error) {
        s->graph = NULL;
        l->graphs = false;
        mt_log_warn("cuda.graph", "steps are launched kernel by kernel, since the driver makes no graph of them: %s",
                    mt_cuda_driver_text(&dev->cu, error));
    }
}

/* Starts the list: replays its graph where there is one, else launches its kernels. */
static void start_list(mt_device *dev)
{
    mt_cuda_launcher *l = dev->launcher;
    if (!replays(dev)) {
        start_some(dev, &l->list, l->list.count);
        return;
    }
    bool again;
    seen *s = find(l, &again);
    l->next = (size_t)(s - l->seen + 1) % LISTS;
    s->last = ++l->now;
    if (!again)
        remember(dev, s, &l->list);
    else if (!s->graph)
        make_graph(dev, s);
    if (s->graph)
        mt_cuda_ok(dev, dev->cu.graph_launch(s->graph, l->stream), "start a graph of kernels");
    else
        start_some(dev, &l->list, l->list.count);
}

CUstream mt_cuda_stream(mt_device *dev)
{
    mt_cuda_launcher *l = dev->launcher;
    dev->waited = false;
    if (l->list.count && !dev->failed) {
        start_list(dev);
        l->idle = false;
    }
    l->list.count = l->list.used = 0;
    return l->stream;
}

void mt_cuda_idle(mt_device *dev)
{
    dev->launcher->idle = true;
}

/* ---- fusion ---- */

/* The parameter of the last call but those of the families `over`, if it is one of `first`; else NULL. */
static void *find_first(call_list *list, uint64_t first, uint64_t over)
{
    uint32_t i = list->count;
    while (i > 0 && family_of(list->call[i - 1].kernel) & over)
        i--;
    return i > 0 && family_of(list->call[i - 1].kernel) & first ? list->parameters + list->call[i - 1].at : NULL;
}

static bool try_fusion(mt_device *dev, const mt_cuda_fusion *f, const mt_cuda_call *call, const void *next)
{
    mt_cuda_launcher *l = dev->launcher;
    void *first = find_first(&l->list, f->first, f->over);
    if (!first)
        return false;
    l->fusing = true;
    const bool fused = f->fuse(dev, first, call, next);
    l->fusing = false;
    l->fused[f - dev->fusions] += fused;
    return fused;
}

static bool fuse(mt_device *dev, const mt_cuda_call *call, const void *next)
{
    const uint64_t family = family_of(call->kernel);
    for (const mt_cuda_fusion *f = dev->fusions; f->name && !dev->launcher->fusing; f++)
        if (f->next & family && try_fusion(dev, f, call, next))
            return true;
    return false;
}

void mt_cuda_spend(mt_device *dev, mt_cuda_mat x)
{
    for (const mt_cuda_fusion *f = dev->fusions; f->name; f++)
        if (!f->next)
            (void)try_fusion(dev, f, NULL, &x);
}

size_t mt_cuda_fused(const mt_device *dev, size_t fusion)
{
    return dev->launcher->fused[fusion];
}

/* ---- the list ---- */

static void append(mt_device *dev, const mt_cuda_call *call, const void *parameter)
{
    call_list *list = &dev->launcher->list;
    const size_t room = mt_cuda_up(call->size, 16), most = dev->launcher->idle ? FIRST : CALLS;
    dev->waited = false;
    if (list->count >= 2 * KEPT && !replays(dev))
        start_front(dev);
    else if (list->count >= most || list->used + room > PARAMETERS)
        (void)mt_cuda_stream(dev);
    mt_cuda_call *to = &list->call[list->count++];
    *to = *call;
    to->at = list->used;
    memcpy(list->parameters + list->used, parameter, call->size);
    memset(list->parameters + list->used + call->size, 0, room - call->size);
    list->used += (uint32_t)room;
}

void mt_cuda_list(mt_device *dev, const mt_cuda_call *call, const void *parameter)
{
    if (!dev->failed && call->grid[0] && call->grid[1] && call->grid[2] && !fuse(dev, call, parameter))
        append(dev, call, parameter);
}

void *mt_cuda_last(mt_device *dev, mt_cuda_kernel first, mt_cuda_kernel last)
{
    call_list *list = &dev->launcher->list;
    const mt_cuda_call *c = list->count ? &list->call[list->count - 1] : NULL;
    return c && c->kernel >= first && c->kernel <= last ? list->parameters + c->at : NULL;
}

void *mt_cuda_listed(mt_device *dev, size_t back, mt_cuda_kernel *kernel)
{
    call_list *list = &dev->launcher->list;
    if (back >= list->count)
        return NULL;
    const mt_cuda_call *c = &list->call[list->count - 1 - back];
    *kernel = c->kernel;
    return list->parameters + c->at;
}

void mt_cuda_drop(mt_device *dev)
{
    call_list *list = &dev->launcher->list;
    assert(list->count);
    list->used = list->call[--list->count].at;
}
