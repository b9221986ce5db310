/* Ranks by Open MPI or another MPI (ranks.h). Owns the list of ranks and the memory for exchanges.

   1. Every message is waited for here by polling, so that it is known which rank has not answered, and the wait can
      end. A polling rank yields its core after a while, as ranks may share one.
   2. Messages between two ranks keep their order, and all ranks do the same in the same order: so messages of one kind
      need no numbers.
   3. A rank is missing when nothing has come from it for `seconds`, or when it ran on this machine and its process is
      gone. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "ranks/ranks.h"

#define SPIN_NS 2000000     /* nanoseconds of polling without sleep */
#define NAP_NS 50000        /* then the interval of polling */
#define IDLE_NS 100000000   /* until nothing has come for so long */
#define SLEEP_NS 500000     /* from then on the interval of polling */
#define LOOK_NS 100000000   /* interval of checks whether processes still run */
#define LOAD_SECONDS 1800.0 /* longest that a rank may take to open a model */
#define OTHERS 2            /* ranks other than 0 wait so many times as long, so that rank 0 reports which is missing */
#define TEXT 64             /* bytes of a machine's name */

enum { TAG_SHARE = 1, TAG_TELL, TAG_ANSWER };

/* The facts that all ranks tell each other at the beginning. */
typedef struct who {
    char host[TEXT];
    int64_t pid;
} who;

struct mt_ranks {
    size_t own, count;
    double seconds;
    who *who;
    MPI_Request *request; /* [2 * count] */
    int *peer;            /* [2 * count]: the rank of each request */
    int requests;
    float *room;
    size_t room_floats;
    uint32_t *heard;
    size_t heard_words;
    pthread_mutex_t turn;
    atomic_bool lost; /* set once, after the error is written; release and acquire, as other threads read the error */
    mt_error why;
    /* relaxed: only counters */
    atomic_uint_fast64_t sent, received, exchanges, waited_ns;
};

const bool mt_ranks_present = true;

static mt_ranks *world;

mt_ranks *mt_ranks_all(void)
{
    return world;
}

size_t mt_ranks_count(const mt_ranks *r)
{
    return r ? r->count : 1;
}

size_t mt_ranks_own(const mt_ranks *r)
{
    return r ? r->own : 0;
}

/* ---- missing ranks ---- */

static bool is_lost(const mt_ranks *r)
{
    return atomic_load_explicit(&r->lost, memory_order_acquire);
}

bool mt_ranks_well(const mt_ranks *r, mt_error *err)
{
    return !r || !is_lost(r) || mt_fail(err, r->why.code, "%s", r->why.text);
}

/* Only the first reason is kept. */
static void lose(mt_ranks *r, const char *what, size_t rank)
{
    if (is_lost(r))
        return;
    mt_fail(&r->why, MT_E_IO, "rank %zu (process %lld on \"%s\") %s; the job ends, start it again", rank,
            (long long)r->who[rank].pid, r->who[rank].host, what);
    mt_log_error("ranks.lost", "%s", r->why.text);
    atomic_store_explicit(&r->lost, true, memory_order_release);
    if (r->own > 0)
        _exit(1); /* mpirun ends the others then */
}

static bool has_ended(const mt_ranks *r, size_t rank)
{
    return strcmp(r->who[rank].host, r->who[r->own].host) == 0 && kill((pid_t)r->who[rank].pid, 0) != 0 &&
           errno == ESRCH;
}

static void rest(uint64_t waited)
{
    if (waited < SPIN_NS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = waited < IDLE_NS ? NAP_NS : SLEEP_NS}, NULL);
}

/* ---- messages ---- */

static void begin(mt_ranks *r)
{
    r->requests = 0;
}

static void failed(mt_ranks *r, int code, size_t rank)
{
    char text[MPI_MAX_ERROR_STRING] = "", what[MPI_MAX_ERROR_STRING + 32];
    int len = 0;
    (void)MPI_Error_string(code, text, &len);
    snprintf(what, sizeof(what), "cannot be reached: %s", text);
    lose(r, what, rank);
}

static void send_to(mt_ranks *r, size_t rank, int tag, const void *data, size_t bytes)
{
    assert(bytes <= INT_MAX);
    if (is_lost(r))
        return;
    const int code = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)rank, tag, MPI_COMM_WORLD, &r->request[r->requests]);
    if (code != MPI_SUCCESS)
        failed(r, code, rank);
    else
        r->peer[r->requests++] = (int)rank;
    atomic_fetch_add_explicit(&r->sent, bytes, memory_order_relaxed);
}

static void receive_from(mt_ranks *r, size_t rank, int tag, void *data, size_t bytes)
{
    assert(bytes <= INT_MAX);
    if (is_lost(r))
        return;
    const int code = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)rank, tag, MPI_COMM_WORLD, &r->request[r->requests]);
    if (code != MPI_SUCCESS)
        failed(r, code, rank);
    else
        r->peer[r->requests++] = (int)rank;
    atomic_fetch_add_explicit(&r->received, bytes, memory_order_relaxed);
}

/* The first request that is not done; -1: all are. */
static int look(mt_ranks *r)
{
    int left = -1;
    for (int i = 0; i < r->requests && !is_lost(r); i++) {
        int done = 1;
        if (r->request[i] == MPI_REQUEST_NULL)
            continue;
        const int code = MPI_Test(&r->request[i], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            failed(r, code, (size_t)r->peer[i]);
        else if (!done && left < 0)
            left = i;
    }
    return left;
}

/* Waits until all requests are done, or a rank is missing. */
static void finish(mt_ranks *r, double seconds)
{
    const uint64_t begun = mt_clock_ns();
    uint64_t looked = begun;
    for (int left; !is_lost(r) && (left = look(r)) >= 0;) {
        const uint64_t now = mt_clock_ns();
        const size_t rank = (size_t)r->peer[left];
        char what[64];
        if (now - looked > LOOK_NS) {
            looked = now;
            if (has_ended(r, rank))
                lose(r, "has ended", rank);
        }
        if ((double)(now - begun) * 1e-9 > seconds) {
            snprintf(what, sizeof(what), "has not answered for %.0f s", seconds);
            lose(r, what, rank);
        }
        rest(now - begun);
    }
    atomic_fetch_add_explicit(&r->waited_ns, mt_clock_ns() - begun, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->exchanges, 1, memory_order_relaxed);
}

void mt_ranks_count_up(const mt_ranks *r, mt_ranks_stats *out)
{
    *out = (mt_ranks_stats){.sent = atomic_load_explicit(&r->sent, memory_order_relaxed),
                            .received = atomic_load_explicit(&r->received, memory_order_relaxed),
                            .exchanges = atomic_load_explicit(&r->exchanges, memory_order_relaxed),
                            .waited_ns = atomic_load_explicit(&r->waited_ns, memory_order_relaxed)};
}

void mt_ranks_enter(mt_ranks *r)
{
    pthread_mutex_lock(&r->turn);
}

void mt_ranks_leave(mt_ranks *r)
{
    pthread_mutex_unlock(&r->turn);
}

void mt_ranks_check(mt_ranks *r)
{
    if (!r || pthread_mutex_trylock(&r->turn) != 0)
        return;
    for (size_t rank = 0; rank < r->count; rank++)
        if (rank != r->own && has_ended(r, rank))
            lose(r, "has ended", rank);
    pthread_mutex_unlock(&r->turn);
}

/* ---- rows that all ranks computed together ---- */

void mt_ranks_reserve(mt_ranks *r, size_t floats)
{
    if (floats <= r->room_floats)
        return;
    mt_free(r->room);
    r->room = mt_alloc_array(floats, sizeof(*r->room));
    r->room_floats = floats;
}

/* A rank's columns of all rows: in the rows themselves where there is one row, else packed in the buffer. */
typedef struct piece {
    size_t first, cols; /* columns */
    float *at;
} piece;

static piece piece_of(const mt_ranks *r, float *data, size_t cols, size_t slices, size_t m, size_t rank)
{
    const size_t first = mt_ranks_first(slices, rank, r->count) * (cols / slices);
    const size_t end = mt_ranks_first(slices, rank + 1, r->count) * (cols / slices);
    return (piece){.first = first, .cols = end - first, .at = m == 1 ? data + first : r->room + m * first};
}

void mt_ranks_share(mt_ranks *r, float *data, size_t stride, size_t cols, size_t slices, size_t m, bool all)
{
    const piece own = piece_of(r, data, cols, slices, m, r->own);
    assert(slices > 0 && cols % slices == 0 && (m == 1 || m * cols <= r->room_floats));
    for (size_t i = 0; m > 1 && i < m; i++)
        memcpy(own.at + i * own.cols, data + i * stride + own.first, own.cols * sizeof(*data));
    begin(r);
    for (size_t rank = 0; rank < r->count; rank++) {
        const piece p = piece_of(r, data, cols, slices, m, rank);
        if (rank == r->own)
            continue;
        if (p.cols && (all || r->own == 0))
            receive_from(r, rank, TAG_SHARE, p.at, m * p.cols * sizeof(*data));
        if (own.cols && (all || rank == 0))
            send_to(r, rank, TAG_SHARE, own.at, m * own.cols * sizeof(*data));
    }
    finish(r, r->own ? OTHERS * r->seconds : r->seconds);
    if (m == 1 || (!all && r->own > 0))
        return;
    for (size_t rank = 0; rank < r->count; rank++) {
        const piece p = piece_of(r, data, cols, slices, m, rank);
        for (size_t i = 0; rank != r->own && i < m; i++)
            memcpy(data + i * stride + p.first, p.at + i * p.cols, p.cols * sizeof(*data));
    }
}

/* ---- messages of rank 0 ---- */

void mt_ranks_tell(mt_ranks *r, const uint32_t *words, size_t count)
{
    assert(r->own == 0);
    begin(r);
    for (size_t rank = 1; rank < r->count; rank++)
        send_to(r, rank, TAG_TELL, words, count * sizeof(*words));
    finish(r, r->seconds);
}

const uint32_t *mt_ranks_hear(mt_ranks *r, size_t *count)
{
    const uint64_t begun = mt_clock_ns();
    MPI_Status status;
    int here = 0, bytes = 0;
    assert(r->own > 0);
    for (uint64_t looked = begun; !here;) {
        const uint64_t now = mt_clock_ns();
        const int code = MPI_Iprobe(0, TAG_TELL, MPI_COMM_WORLD, &here, &status);
        if (code != MPI_SUCCESS)
            failed(r, code, 0);
        if (now - looked > LOOK_NS) {
            looked = now;
            if (has_ended(r, 0))
                lose(r, "has ended", 0);
        }
        if (!here)
            rest(now - begun);
    }
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    *count = (size_t)bytes / sizeof(*r->heard);
    if (*count > r->heard_words) {
        mt_free(r->heard);
        r->heard_words = *count + *count / 2;
        r->heard = mt_alloc_array(r->heard_words, sizeof(*r->heard));
    }
    begin(r);
    receive_from(r, 0, TAG_TELL, r->heard, (size_t)bytes);
    finish(r, OTHERS * r->seconds);
    return r->heard;
}

void mt_ranks_answer(mt_ranks *r, const mt_error *err)
{
    begin(r);
    send_to(r, 0, TAG_ANSWER, err, sizeof(*err));
    finish(r, OTHERS * r->seconds);
}

bool mt_ranks_agree(mt_ranks *r, mt_error *err)
{
    mt_error *answer = mt_alloc_array(r->count, sizeof(*answer));
    bool ok = true;
    begin(r);
    for (size_t rank = 1; rank < r->count; rank++)
        receive_from(r, rank, TAG_ANSWER, &answer[rank], sizeof(*answer));
    finish(r, LOAD_SECONDS);
    ok = mt_ranks_well(r, err);
    for (size_t rank = 1; ok && rank < r->count; rank++)
        if (answer[rank].code != MT_OK)
            ok = mt_fail(err, answer[rank].code, "rank %zu on \"%s\": %s", rank, r->who[rank].host, answer[rank].text);
    if (!is_lost(r)) /* otherwise messages may still arrive */
        mt_free(answer);
    return ok;
}

/* ---- beginning and end ---- */

/* Every rank sends its identity to every other: this opens all connections, which is not possible any more once the
   process has given up opening files. */
static void introduce(mt_ranks *r)
{
    who *own = &r->who[r->own];
    own->pid = getpid();
    if (gethostname(own->host, sizeof(own->host) - 1))
        snprintf(own->host, sizeof(own->host), "unknown");
    begin(r);
    for (size_t rank = 0; rank < r->count; rank++) {
        if (rank == r->own)
            continue;
        receive_from(r, rank, TAG_SHARE, &r->who[rank], sizeof(*r->who));
        send_to(r, rank, TAG_SHARE, own, sizeof(*own));
    }
    finish(r, LOAD_SECONDS);
    for (size_t rank = 0; r->own == 0 && rank < r->count; rank++)
        mt_log_info("ranks.joined", "rank %zu is process %lld on \"%s\"", rank, (long long)r->who[rank].pid,
                    r->who[rank].host);
}

/* Open MPI copies large messages between processes of one machine with process_vm_readv, which the sandbox refuses
   (base/confine.c): then each message is a line of complaint and is sent again in another way. It takes that way at
   once where it is told to, by these names in its versions 4 and 5. Values that the user has set stay. */
static void choose_transport(void)
{
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    setenv("OMPI_MCA_smsc", "^cma", 0);
}

bool mt_ranks_join(double seconds, mt_error *err)
{
    int given = 0, own = 0, count = 1;
    if (world || mt_ranks_started() == 1)
        return true;
    choose_transport();
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS || given < MPI_THREAD_SERIALIZED)
        return mt_fail(err, MT_E_UNSUPPORTED, "this MPI does not work with threads; use another");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    mt_ranks *r = mt_alloc(sizeof(*r));
    *r = (mt_ranks){.own = (size_t)own, .count = (size_t)count, .seconds = seconds};
    pthread_mutex_init(&r->turn, NULL);
    r->who = mt_alloc_array(r->count, sizeof(*r->who));
    r->request = mt_alloc_array(2 * r->count, sizeof(*r->request));
    r->peer = mt_alloc_array(2 * r->count, sizeof(*r->peer));
    world = r;
    introduce(r);
    return mt_ranks_well(r, err);
}

void mt_ranks_part(void)
{
    mt_ranks *r = world;
    if (!r)
        return;
    if (r->own == 0)
        mt_ranks_tell(r, NULL, 0);
    if (is_lost(r))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    pthread_mutex_destroy(&r->turn);
    mt_free(r->who);
    mt_free(r->request);
    mt_free(r->peer);
    mt_free(r->room);
    mt_free(r->heard);
    mt_free(r);
    world = NULL;
}
