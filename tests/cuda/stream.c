/* Streams, what waits on them, and graphs of kernels. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define PARAMETER 4096 /* bytes that a kernel may be given */

typedef enum kind { COPY, ROWS, SET, LAUNCH, AFTER } kind;

typedef struct work {
    kind kind;
    uint64_t to, from; /* COPY; SET: to. Addresses of this machine, whichever memory they are in */
    size_t bytes;
    unsigned char value;
    CUmemcpy2D rows;
    CUfunction function;
    unsigned grid[3], block[3];
    void *parameter; /* its own */
    size_t size;
    CUstream stream; /* AFTER: what was enqueued there, so many pieces of work */
    uint64_t pieces;
} work;

typedef struct works {
    work *work;
    size_t count, room;
} works;

struct CUstream_st {
    bool alive;
    CUcontext context;
    CUgraph capture; /* what is launched goes here */
    works waiting;
    uint64_t done; /* pieces of work so far */
};

/* A place in a stream: behind so many pieces of its work. */
struct CUevent_st {
    bool alive;
    CUcontext context;
    CUstream stream; /* NULL: it was not recorded */
    uint64_t pieces;
};

struct CUgraph_st {
    works works;
};

struct CUgraphExec_st {
    works works;
};

struct CUfunc_st {
    char name[64];
    CUmodule module;
    int shared; /* dynamic, that it may be given */
    struct CUfunc_st *next;
};

struct CUmod_st {
    struct CUmod_st *next;
    CUcontext context;
    CUfunction functions;
};

#define STREAMS 64
#define EVENTS 4096
#define GRAPHS 4096
static struct CUstream_st streams[STREAMS];
static struct CUevent_st events[EVENTS];
static CUmodule modules;
static CUcontext graph_of[GRAPHS]; /* those there are, in no order */

/* ---- work ---- */

static void add(works *list, const work *w)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->work = realloc(list->work, list->room * sizeof(*list->work));
    }
    work *to = &list->work[list->count++];
    *to = *w;
    if (w->parameter) {
        to->parameter = malloc(w->size);
        memcpy(to->parameter, w->parameter, w->size);
    }
}

static void clear(works *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->work[i].parameter);
    free(list->work);
    *list = (works){0};
}

/* Every address of the GPU's among the parameters is alive. */
static void check_parameters(const char *call, const work *w)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= w->size; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)w->parameter + at, sizeof(word));
        if (fake_memory_ours(word) && !fake_memory_has(word, 0))
            fake_broken(call, "%s is given %#llx (at byte %zu), which is not allocated any more", w->function->name,
                        (unsigned long long)word, at);
    }
}

static bool reachable(uint64_t at, size_t bytes)
{
    return fake_memory_has(at, bytes) || fake_pinned_has((void *)(uintptr_t)at, bytes);
}

static void do_rows(const CUmemcpy2D *c)
{
    const bool back = c->from_type == MT_CU_MEMORY_DEVICE;
    char *to = back ? c->to_host : (char *)(uintptr_t)c->to;
    const char *from = back ? (const char *)(uintptr_t)c->from : c->from_host;
    if (!back)
        fake_memory_written(c->to);
    for (size_t i = 0; i < c->height; i++)
        memcpy(to + i * c->to_pitch, from + i * c->from_pitch, c->width);
}

static void run_to(CUstream stream, uint64_t pieces);

static void do_work(const work *w)
{
    switch (w->kind) {
    case COPY:
        if (!reachable(w->to, w->bytes) || !reachable(w->from, w->bytes))
            fake_broken("cuStreamSynchronize", "a copy of %zu bytes waits for memory that was freed", w->bytes);
        fake_memory_written(w->to);
        memcpy((void *)(uintptr_t)w->to, (void *)(uintptr_t)w->from, w->bytes);
        break;
    case ROWS: do_rows(&w->rows); break;
    case SET:
        if (w->value == 0 && fake_memory_is_zero(w->to, w->bytes))
            break; /* which saves the time */
        fake_memory_written(w->to);
        memset((void *)(uintptr_t)w->to, w->value, w->bytes);
        break;
    case LAUNCH:
        check_parameters("cuStreamSynchronize", w);
        fake_effect(&(fake_launch){w->function->name, w->grid, w->block, w->parameter, w->size});
        break;
    case AFTER: run_to(w->stream, w->pieces); break;
    }
}

/* All that was enqueued up to a place, and no more. */
static void run_to(CUstream stream, uint64_t pieces)
{
    works *w = &stream->waiting;
    size_t done = 0;
    for (; done < w->count && stream->done < pieces; done++, stream->done++) {
        do_work(&w->work[done]);
        free(w->work[done].parameter);
    }
    if (done)
        memmove(w->work, w->work + done, (w->count - done) * sizeof(*w->work));
    w->count -= done;
    if (w->count == 0)
        clear(w);
}

static void run(CUstream stream)
{
    run_to(stream, UINT64_MAX);
}

void fake_streams_run(void)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (streams[i].context == fake_context())
            run(&streams[i]);
}

static void check_stream(const char *call, CUstream stream)
{
    if (stream < streams || stream >= streams + STREAMS || !stream->alive)
        fake_broken(call, "this stream was destroyed, or never created");
    if (stream->context != fake_context())
        fake_broken(call, "this stream is another context's");
}

static void enqueue(const char *call, CUstream stream, const work *w)
{
    check_stream(call, stream);
    if (stream->capture && w->kind != LAUNCH)
        fake_broken(call, "only kernels belong into a graph");
    add(stream->capture ? &stream->capture->works : &stream->waiting, w);
}

void fake_streams_check_empty(const char *call, CUcontext context)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (streams[i].alive && streams[i].context == context)
            fake_broken(call, "a stream was not destroyed");
    for (size_t i = 0; i < EVENTS; i++)
        if (events[i].alive && events[i].context == context)
            fake_broken(call, "an event was not destroyed");
    for (CUmodule m = modules; m; m = m->next)
        if (m->context == context)
            fake_broken(call, "a module was not unloaded");
    for (size_t i = 0; i < GRAPHS; i++)
        if (graph_of[i] == context)
            fake_broken(call, "a graph was not destroyed");
}

static void unload(CUmodule module)
{
    for (CUfunction f = module->functions; f;) {
        CUfunction next = f->next;
        free(f);
        f = next;
    }
    free(module);
}

void fake_streams_drop(CUcontext context)
{
    for (size_t i = 0; i < STREAMS; i++)
        if (!context || streams[i].context == context) {
            clear(&streams[i].waiting);
            streams[i] = (struct CUstream_st){0};
        }
    for (size_t i = 0; i < EVENTS; i++)
        if (!context || events[i].context == context)
            events[i] = (struct CUevent_st){0};
    for (CUmodule *link = &modules; *link;) {
        CUmodule m = *link;
        if (context && m->context != context) {
            link = &m->next;
            continue;
        }
        *link = m->next;
        unload(m);
    }
    for (size_t i = 0; i < GRAPHS; i++)
        if (!context || graph_of[i] == context)
            graph_of[i] = NULL;
}

/* One graph more, or one less, of the current context. */
static void count_graph(bool more)
{
    size_t i = 0;
    while (i < GRAPHS && graph_of[i] != (more ? NULL : fake_context()))
        i++;
    if (i == GRAPHS)
        fake_broken("cuGraph", more ? "there are too many graphs" : "this graph is another context's");
    graph_of[i] = more ? fake_context() : NULL;
}

FAKE_API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    FAKE_CALL(true);
    (void)flags;
    if (error)
        return error;
    for (size_t i = 0; i < STREAMS; i++)
        if (!streams[i].alive) {
            streams[i].alive = true;
            streams[i].context = fake_context();
            *stream = &streams[i];
            return 0;
        }
    return OUT_OF_MEMORY;
}

FAKE_API CUresult cuStreamDestroy_v2(CUstream stream)
{
    FAKE_CALL(true);
    check_stream(__func__, stream);
    if (error)
        return error;
    run(stream);
    stream->alive = false;
    return 0;
}

FAKE_API CUresult cuStreamSynchronize(CUstream stream)
{
    FAKE_CALL(true);
    check_stream(__func__, stream);
    if (stream->capture)
        fake_broken(__func__, "nobody can wait for a stream that is captured");
    if (error)
        return error;
    run(stream);
    return 0;
}

/* ---- events ---- */

static void check_event(const char *call, CUevent event)
{
    if (event < events || event >= events + EVENTS || !event->alive)
        fake_broken(call, "this event was destroyed, or never created");
    if (event->context != fake_context())
        fake_broken(call, "this event is another context's");
}

FAKE_API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    FAKE_CALL(true);
    if (flags != MT_CU_EVENT_WITHOUT_TIME)
        fake_broken(__func__, "events that tell the time are slow");
    if (error)
        return error;
    for (size_t i = 0; i < EVENTS; i++)
        if (!events[i].alive) {
            events[i] = (struct CUevent_st){.alive = true, .context = fake_context()};
            *event = &events[i];
            return 0;
        }
    return OUT_OF_MEMORY;
}

FAKE_API CUresult cuEventDestroy_v2(CUevent event)
{
    FAKE_CALL(true);
    check_event(__func__, event);
    if (!error)
        event->alive = false;
    return error;
}

FAKE_API CUresult cuEventRecord(CUevent event, CUstream stream)
{
    FAKE_CALL(true);
    check_event(__func__, event);
    check_stream(__func__, stream);
    if (!error)
        *event = (struct CUevent_st){
            .alive = true, .context = event->context, .stream = stream, .pieces = stream->done + stream->waiting.count};
    return error;
}

FAKE_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    FAKE_CALL(true);
    (void)flags;
    check_event(__func__, event);
    if (!event->stream)
        fake_broken(__func__, "nothing was recorded: nobody would wait");
    if (!error)
        enqueue(__func__, stream, &(work){.kind = AFTER, .stream = event->stream, .pieces = event->pieces});
    return error;
}

/* It takes its time: every other question hears that it is not over, so that an event may be over for who asks after
   one before it was not. */
FAKE_API CUresult cuEventQuery(CUevent event)
{
    FAKE_CALL(true);
    check_event(__func__, event);
    if (error || !event->stream)
        return error;
    static atomic_uint questions;
    if (event->stream->done < event->pieces && atomic_fetch_add(&questions, 1) % 2 == 0)
        return MT_CU_NOT_READY;
    run_to(event->stream, event->pieces);
    return 0;
}

FAKE_API CUresult cuEventSynchronize(CUevent event)
{
    FAKE_CALL(true);
    check_event(__func__, event);
    if (!error && event->stream)
        run_to(event->stream, event->pieces);
    return error;
}

/* ---- copies ---- */

static void check_gpu(const char *call, uint64_t at, size_t bytes)
{
    if (!fake_memory_has(at, bytes))
        fake_broken(call, "%zu bytes at %#llx are not all allocated", bytes, (unsigned long long)at);
}

static void check_pinned(const char *call, const void *at, size_t bytes)
{
    if (!fake_pinned_has(at, bytes))
        fake_broken(call, "%zu bytes of the host are not pinned: the copy would wait for all others", bytes);
}

FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    FAKE_CALL(true);
    check_gpu(__func__, to, bytes);
    check_pinned(__func__, from, bytes);
    if (!error)
        enqueue(__func__, stream, &(work){.kind = COPY, .to = to, .from = (uintptr_t)from, .bytes = bytes});
    return error;
}

FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    FAKE_CALL(true);
    check_gpu(__func__, from, bytes);
    check_pinned(__func__, to, bytes);
    memset(to, 0xcd, bytes); /* who reads before it is there, or though it failed, reads this */
    if (error)
        return error;
    enqueue(__func__, stream, &(work){.kind = COPY, .to = (uintptr_t)to, .from = from, .bytes = bytes});
    return 0;
}

FAKE_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    FAKE_CALL(true);
    check_gpu(__func__, to, bytes);
    check_gpu(__func__, from, bytes);
    if (to < from + bytes && from < to + bytes)
        fake_broken(__func__, "a piece is copied onto itself");
    if (!error)
        enqueue(__func__, stream, &(work){.kind = COPY, .to = to, .from = from, .bytes = bytes});
    return error;
}

FAKE_API CUresult cuMemcpy2DAsync_v2(const CUmemcpy2D *c, CUstream stream)
{
    FAKE_CALL(true);
    const size_t rows = c->height ? c->height - 1 : 0, from = rows * c->from_pitch + c->width,
                 to = rows * c->to_pitch + c->width;
    if (c->from_type == c->to_type || c->from_x || c->to_x || c->from_y || c->to_y || c->width > c->from_pitch ||
        c->width > c->to_pitch)
        fake_broken(__func__, "this kind of copy is not known here");
    if (c->from_type == MT_CU_MEMORY_DEVICE) {
        check_gpu(__func__, c->from, from);
        check_pinned(__func__, c->to_host, to);
    } else {
        check_pinned(__func__, c->from_host, from);
        check_gpu(__func__, c->to, to);
    }
    if (!error)
        enqueue(__func__, stream, &(work){.kind = ROWS, .rows = *c});
    return error;
}

FAKE_API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    FAKE_CALL(true);
    check_gpu(__func__, at, bytes);
    if (!error)
        enqueue(__func__, stream, &(work){.kind = SET, .to = at, .value = value, .bytes = bytes});
    return error;
}

/* ---- modules ---- */

FAKE_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    FAKE_CALL(true);
    if (error)
        return error;
    if (!image)
        fake_broken(__func__, "there is no image");
    *module = calloc(1, sizeof(**module));
    (*module)->context = fake_context();
    (*module)->next = modules;
    modules = *module;
    return 0;
}

static CUmodule *find_module(const char *call, CUmodule module)
{
    CUmodule *link = &modules;
    while (*link && *link != module)
        link = &(*link)->next;
    if (!*link)
        fake_broken(call, "the module is not loaded");
    if (module->context != fake_context())
        fake_broken(call, "the module is another context's");
    return link;
}

FAKE_API CUresult cuModuleUnload(CUmodule module)
{
    FAKE_CALL(true);
    CUmodule *link = find_module(__func__, module);
    if (error)
        return error;
    fake_streams_run();
    *link = module->next;
    unload(module);
    return 0;
}

/* The first module has every kernel. */
FAKE_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    FAKE_CALL(true);
    find_module(__func__, module);
    if (error)
        return error;
    if (strncmp(name, "mtk_", 4) != 0 || strlen(name) >= sizeof(module->functions->name))
        return NOT_FOUND;
    fake_noted("has", name);
    *function = calloc(1, sizeof(**function));
    strncpy((*function)->name, name, sizeof(*function)->name - 1);
    (*function)->module = module;
    (*function)->shared = 48 << 10;
    (*function)->next = module->functions;
    module->functions = *function;
    return 0;
}

FAKE_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    FAKE_CALL(true);
    find_module(__func__, function->module);
    *value = attribute == MT_CU_FUNC_PTX_VERSION ? fake.code : 0;
    return error;
}

FAKE_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    FAKE_CALL(true);
    find_module(__func__, function->module);
    if (attribute != MT_CU_FUNC_SHARED_BYTES)
        fake_broken(__func__, "attribute %d is none that this driver knows", attribute);
    if (!error)
        function->shared = value;
    return error;
}

/* ---- kernels ---- */

static void check_config(const char *call, const CUlaunchConfig *c, CUfunction function)
{
    const unsigned threads = c->block[0] * c->block[1] * c->block[2];
    if (threads == 0 || threads > 1024 || c->grid[0] == 0 || c->grid[1] == 0 || c->grid[2] == 0 || c->grid[1] > 65535 ||
        c->grid[2] > 65535 || c->grid[0] > INT32_MAX)
        fake_broken(call, "%s on %u x %u x %u blocks of %u threads", function->name, c->grid[0], c->grid[1], c->grid[2],
                    threads);
    for (unsigned i = 0; i < c->attribute_count; i++)
        if (c->attributes[i].id == MT_CU_LAUNCH_CLUSTER &&
            (c->attributes[i].value.cluster[0] == 0 || c->attributes[i].value.cluster[0] > 8 ||
             c->grid[0] % c->attributes[i].value.cluster[0]))
            fake_broken(call, "%s on %u blocks in clusters of %u", function->name, c->grid[0],
                        c->attributes[i].value.cluster[0]);
    if (c->shared > (unsigned)function->shared)
        fake_broken(call, "%s asks for %u bytes of shared memory of %d", function->name, c->shared, function->shared);
}

FAKE_API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra)
{
    FAKE_CALL(true);
    find_module(__func__, function->module);
    check_config(__func__, c, function);
    if (parameters || !extra || extra[0] != MT_CU_PARAMETER_AT || extra[2] != MT_CU_PARAMETER_SIZE ||
        extra[4] != MT_CU_PARAMETER_END)
        fake_broken(__func__, "%s has no parameters whose size is known", function->name);
    work w = {.kind = LAUNCH, .function = function, .parameter = extra[1], .size = *(size_t *)extra[3]};
    if (w.size > PARAMETER)
        fake_broken(__func__, "%s has %zu bytes of parameters", function->name, w.size);
    memcpy(w.grid, c->grid, sizeof(w.grid));
    memcpy(w.block, c->block, sizeof(w.block));
    check_parameters(__func__, &w);
    fake_noted("ran", function->name);
    if (!error)
        enqueue(__func__, c->stream, &w);
    return error;
}

/* ---- graphs ---- */

FAKE_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    FAKE_CALL(true);
    (void)mode;
    check_stream(__func__, stream);
    if (stream->capture)
        fake_broken(__func__, "the stream is captured already");
    if (!error)
        stream->capture = calloc(1, sizeof(*stream->capture));
    return error;
}

FAKE_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    FAKE_CALL(true);
    check_stream(__func__, stream);
    if (!stream->capture)
        return 901; /* as the real one, where it did not begin */
    *graph = stream->capture;
    stream->capture = NULL;
    if (error) {
        clear(&(*graph)->works);
        free(*graph);
        *graph = NULL;
        return error;
    }
    count_graph(true);
    return 0;
}

FAKE_API CUresult cuGraphDestroy(CUgraph graph)
{
    FAKE_CALL(true);
    clear(&graph->works);
    free(graph);
    count_graph(false);
    return error;
}

FAKE_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    FAKE_CALL(true);
    (void)flags;
    if (error)
        return error;
    *exec = calloc(1, sizeof(**exec));
    for (size_t i = 0; i < graph->works.count; i++)
        add(&(*exec)->works, &graph->works.work[i]);
    count_graph(true);
    return 0;
}

FAKE_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    FAKE_CALL(true);
    clear(&exec->works);
    free(exec);
    count_graph(false);
    return error;
}

FAKE_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    FAKE_CALL(true);
    check_stream(__func__, stream);
    for (size_t i = 0; i < exec->works.count && !error; i++) {
        check_parameters(__func__, &exec->works.work[i]);
        enqueue(__func__, stream, &exec->works.work[i]);
    }
    return error;
}
