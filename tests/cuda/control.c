/* Settings, counts and faults, contexts: what is the same for every call. One lock is over all of it. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

#define CALLS 64

fake_settings fake;

typedef struct counter {
    const char *name;
    size_t calls;
} counter;

static counter counters[] = {
#define COUNTER(field, symbol, parameters) {.name = symbol},
    MT_CU_CALLS(COUNTER)
#undef COUNTER
};
static char fail_name[CALLS];
static size_t fail_at;
static CUresult fail_code;
static char fail_when[120], launches[120];
static CUresult gone; /* what every context fails with: the card is lost */
static bool configured;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct CUctx_st {
    bool alive, refused_free; /* refused_free: something could not be freed because the driver refused */
    CUresult spoilt;          /* it fails so whatever is asked of it */
};

#define CONTEXTS 8192 /* none is given out twice */
static struct CUctx_st contexts[CONTEXTS];
static size_t context_count;
static _Thread_local CUcontext current;

/* ---- settings ---- */

static void set_one(const char *word)
{
    unsigned long n = 0;
    if (sscanf(word, "fail=%63[^:]:%zu:%d", fail_name, &fail_at, &fail_code) == 3)
        return;
    if (sscanf(word, "when=%119s", fail_when) == 1 || sscanf(word, "launches=%119s", launches) == 1)
        return;
    if (strcmp(word, "lost") == 0)
        fake.lost = true;
    else if (sscanf(word, "memory=%lu", &n) == 1)
        fake.memory = n << 20;
    else if (sscanf(word, "count=%d", &fake.count) != 1 && sscanf(word, "capability=%d", &fake.capability) != 1 &&
             sscanf(word, "code=%d", &fake.code) != 1 && sscanf(word, "version=%d", &fake.version) != 1)
        fake_broken("MOTET_FAKE_CUDA", "\"%s\" means nothing", word);
}

void fake_cuda_set(const char *settings)
{
    char words[256], *save = NULL;
    fake_streams_drop(NULL);
    fake_memory_drop(NULL);
    for (size_t i = 0; i < context_count; i++)
        contexts[i].alive = false;
    gone = 0;
    fake = (fake_settings){.count = 2, .capability = 90, .code = 90, .version = 13000, .memory = (size_t)2 << 30};
    fail_at = 0;
    fail_when[0] = '\0';
    configured = true;
    for (size_t i = 0; i < MT_COUNT(counters); i++)
        counters[i].calls = 0;
    snprintf(words, sizeof(words), "%s", settings ? settings : "");
    for (char *word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save))
        set_one(word);
}

size_t fake_cuda_calls(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(counters); i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].calls;
    return 0;
}

const char *fake_cuda_name(size_t i)
{
    return i < MT_COUNT(counters) ? counters[i].name : NULL;
}

void fake_broken(const char *call, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "fake cuda: %s: ", call);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

void fake_noted(const char *what, const char *kernel)
{
    static char known[512][80];
    char line[80];
    size_t i = 0;
    if (!launches[0])
        return;
    snprintf(line, sizeof(line), "%s %s", what, kernel);
    while (i < MT_COUNT(known) && known[i][0] && strcmp(known[i], line) != 0)
        i++;
    if (i == MT_COUNT(known) || known[i][0])
        return;
    snprintf(known[i], sizeof(known[i]), "%s", line);
    FILE *f = fopen(launches, "a");
    if (!f)
        fake_broken("MOTET_FAKE_CUDA", "%s cannot be written", launches);
    fprintf(f, "%s\n", line);
    fclose(f);
}

/* ---- contexts ---- */

CUcontext fake_context(void)
{
    return current;
}

static bool frees(const char *name)
{
    return strstr(name, "Free") || strstr(name, "Destroy") || strstr(name, "Unload") || strstr(name, "Release");
}

/* Whether calls count. They do from the moment there is a file on, where faults wait for one. */
static bool armed(void)
{
    static bool before;
    const bool now = !fail_when[0] || access(fail_when, F_OK) == 0;
    for (size_t i = 0; now && !before && fail_when[0] && i < MT_COUNT(counters); i++)
        counters[i].calls = 0;
    before = now;
    return now;
}

/* Counts the call; what it is told to fail with. */
static CUresult count_call(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(counters); i++)
        if (strcmp(counters[i].name, name) == 0) {
            if (!armed())
                return 0;
            if (++counters[i].calls != fail_at || strcmp(name, fail_name) != 0)
                return 0;
            if (fail_when[0])
                unlink(fail_when);
            return fail_code;
        }
    fake_broken(name, "is not in src/device/cuda/host/driver.h");
}

static CUresult fault_of(const char *name, bool in_context)
{
    const CUresult error = count_call(name);
    if (error >= FIRST_FATAL && current)
        current->spoilt = error;
    if (error >= FIRST_FATAL && fake.lost)
        gone = error;
    if (error || strcmp(name, "cuGetErrorString") == 0)
        return error;
    return gone ? gone : in_context && current ? current->spoilt : 0;
}

CUresult fake_enter(const char *name, bool in_context)
{
    pthread_mutex_lock(&lock);
    if (!configured)
        fake_cuda_set(getenv("MOTET_FAKE_CUDA"));
    const CUresult error = fault_of(name, in_context);
    if (error && frees(name) && current)
        current->refused_free = true;
    if (in_context && !error && (!current || !current->alive))
        fake_broken(name, "this thread has no context, or one that was destroyed");
    return error;
}

void fake_leave(const int *call)
{
    (void)call;
    pthread_mutex_unlock(&lock);
}

FAKE_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    FAKE_CALL(false);
    (void)flags;
    if (error)
        return error;
    if (device < 0 || device >= fake.count)
        fake_broken(__func__, "there is no device %d", device);
    if (context_count == CONTEXTS)
        fake_broken(__func__, "there are no more contexts");
    *context = current = &contexts[context_count++];
    current->alive = true;
    return 0;
}

FAKE_API CUresult cuCtxDestroy_v2(CUcontext context)
{
    FAKE_CALL(false);
    if (!context || !context->alive)
        fake_broken(__func__, "it was destroyed before");
    if (error && !context->spoilt)
        return error;
    if (!context->spoilt && !context->refused_free && !gone) {
        fake_memory_check_empty(__func__, context);
        fake_streams_check_empty(__func__, context);
    }
    fake_streams_drop(context);
    fake_memory_drop(context);
    context->alive = false;
    current = current == context ? NULL : current;
    return error;
}

FAKE_API CUresult cuCtxSetCurrent(CUcontext context)
{
    FAKE_CALL(false);
    if (error)
        return error;
    if (context && !context->alive)
        fake_broken(__func__, "the context was destroyed");
    current = context;
    return context ? context->spoilt : 0;
}

/* ---- the driver and its devices ---- */

FAKE_API CUresult cuInit(unsigned flags)
{
    (void)flags;
    FAKE_CALL(false);
    return error;
}

FAKE_API CUresult cuDriverGetVersion(int *version)
{
    FAKE_CALL(false);
    *version = fake.version;
    return error;
}

FAKE_API CUresult cuGetErrorString(CUresult code, const char **text)
{
    static char said[40];
    FAKE_CALL(false);
    snprintf(said, sizeof(said), "fault %d on purpose", code);
    *text = error ? NULL : said;
    return error;
}

FAKE_API CUresult cuDeviceGetCount(int *count)
{
    FAKE_CALL(false);
    *count = fake.count;
    return error;
}

FAKE_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FAKE_CALL(false);
    if (ordinal < 0 || ordinal >= fake.count)
        return 101;
    *device = ordinal;
    return error;
}

FAKE_API CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    FAKE_CALL(false);
    snprintf(name, (size_t)len, "Fake %d", device);
    return error;
}

FAKE_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    FAKE_CALL(false);
    (void)device;
    *bytes = fake.memory;
    return error;
}

FAKE_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    FAKE_CALL(false);
    (void)device;
    switch (attribute) {
    case MT_CU_ATTRIBUTE_MULTIPROCESSORS: *value = 4; break;
    case MT_CU_ATTRIBUTE_MAJOR: *value = fake.capability / 10; break;
    case MT_CU_ATTRIBUTE_MINOR: *value = fake.capability % 10; break;
    case MT_CU_ATTRIBUTE_SHARED_BYTES: *value = fake.code >= 90 ? 227 << 10 : 163 << 10; break;
    default: fake_broken(__func__, "attribute %d is none that this driver knows", attribute);
    }
    return error;
}
