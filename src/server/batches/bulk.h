/* One batch of requests: its fields, the names of its files, and the functions that read and write them. The type is
   mt_bulk because mt_batch is a batch of rows of a device. Each request is a line of the batch's file. */
#ifndef MT_SERVER_BATCHES_BULK_H
#define MT_SERVER_BATCHES_BULK_H

#include "api/dialect.h"
#include "api/random.h"
#include "base/buf.h"
#include "files/journal.h"
#include "files/store.h"
#include "server/calls/mailbox.h"
#include "server/limits.h"

typedef struct mt_batches mt_batches;
typedef struct mt_server mt_server;

/* The states of a batch, named as in OpenAI's API. */
typedef enum mt_bulk_state {
    MT_BULK_VALIDATING, /* the lines of the client's file are checked and copied */
    MT_BULK_FAILED,     /* the file has faults, which `errors` lists; no line was answered */
    MT_BULK_RUNNING,    /* lines are answered */
    MT_BULK_FINALIZING, /* all lines have results; files are made of them */
    MT_BULK_COMPLETED,
    MT_BULK_EXPIRED,    /* the completion window ended before all lines were answered */
    MT_BULK_CANCELLING, /* no more lines start; those that run are finished */
    MT_BULK_CANCELLED,  /* a client cancelled the batch, and no line runs any more */
    MT_BULK_STATES
} mt_bulk_state;

/* The result of a line. The first four are the kinds of the journal's records. */
typedef enum mt_bulk_result {
    MT_BULK_ANSWERED, /* the request's answer */
    MT_BULK_ERRED,    /* the request's error */
    MT_BULK_LAPSED,   /* not answered: the completion window ended first */
    MT_BULK_DROPPED,  /* not answered: the batch was cancelled first */
    MT_BULK_RESULTS,
    MT_BULK_AGAIN /* none yet: the server had no room for the line, which starts again later */
} mt_bulk_result;

#define MT_BULK_KINDS "oexc" /* the letter of each kind in the journal */

/* A line of an active batch. */
typedef struct mt_bulk_line {
    uint64_t begin; /* its place in the file of lines */
    uint32_t len;   /* bytes, without the end of the line */
    enum {
        MT_LINE_WAITS,
        MT_LINE_RUNNING,
        MT_LINE_CLOSED,
        MT_LINE_DONE
    } state; /* CLOSED: its result, which is no answer, is written and not synced yet */
} mt_bulk_line;

typedef struct mt_bulk mt_bulk;

struct mt_bulk {
    mt_bulk *next; /* the batch that was added before this one */

    /* The fields that the head holds. Under the lock of the batches; fields that never change are read without it. */
    char id[MT_RANDOM_ID], owner[MT_FILES_OWNER];
    bool anthropic;            /* made through Anthropic's API; else through OpenAI's */
    const char *endpoint;      /* the path of all lines, a constant string */
    const mt_dialect *dialect; /* of that path */
    char input[MT_RANDOM_ID];  /* OpenAI's: the client's file of lines */
    char *metadata;            /* OpenAI's: JSON, or NULL */
    char window[32];           /* OpenAI's: the completion window as the client wrote it */
    int64_t output_seconds;    /* OpenAI's: lifetime of the files of results; 0: that of other files */
    mt_bulk_state state;
    int64_t at[MT_BULK_STATES]; /* when each state began, seconds since 1970; 0: it has not */
    int64_t expires;
    char output[MT_RANDOM_ID], errors_file[MT_RANDOM_ID]; /* OpenAI's: files of the results; "": none */
    char *errors; /* OpenAI's: the faults of the file, a JSON list; NULL: none */
    size_t total; /* lines; 0 while the file is being checked */

    /* Under the lock. The counts are those of the journal, and of the head once the batch is over. */
    size_t counts[MT_BULK_RESULTS];
    int64_t cancel; /* when a client cancelled it; 0: none has */
    bool gone;      /* a client has deleted it: the thread frees it */

    /* Only the batches' thread uses the rest. */
    bool counted;   /* mt_batches_count has been here */
    bool failing;   /* something could not be written, and the log says so; tried again at `later` */
    uint64_t later; /* mt_clock_ns: the batch is left alone before it */
    mt_files_part *claim;
    uint64_t unsynced; /* bytes claimed for results that are in the journal and not synced */
    /* The rest is set while the batch is active: its lines and its journal are open */
    bool active;
    mt_journal *journal;
    int lines_fd;
    mt_bulk_line *lines;
    size_t first;   /* all lines before this one run or are done */
    size_t running; /* lines that the io thread has */
};

/* A running line: a message from the batches' thread to the io thread, which answers the line and sends it back. */
typedef struct mt_bulk_job {
    mt_message message;
    mt_server *server;
    mt_bulk *batch;
    uint32_t line;
    char *custom; /* the client's name for the line */
    char *body;
    size_t body_len, charged; /* charged: bytes taken from the server's room for requests */
    mt_bulk_result result;
    mt_buf text; /* the line for the file of results */
    struct mt_bulk_job *next;
} mt_bulk_job;

void mt_bulk_job_free(mt_bulk_job *job);
void mt_bulk_job_open(mt_message *message); /* io thread: starts a line */

/* The constant string of a path that lines may have, and its dialect. NULL: lines may not have this path. */
const char *mt_bulk_endpoint(const char *path, const mt_dialect **dialect);

static inline bool mt_bulk_is_over(mt_bulk_state state)
{
    return state == MT_BULK_FAILED || state == MT_BULK_COMPLETED || state == MT_BULK_EXPIRED ||
           state == MT_BULK_CANCELLED;
}

/* ---- head.c: the head, a JSON file that is replaced as a whole ---- */

#define MT_BULK_HEAD ".batch"      /* endings of file names, after the id: the head */
#define MT_BULK_LINES ".lines"     /* the lines */
#define MT_BULK_JOURNAL ".results" /* the journal */

typedef char mt_bulk_path[MT_RANDOM_ID + 16];

const char *mt_bulk_path_of(mt_bulk_path path, const mt_bulk *batch, const char *end);
void mt_bulk_head_write(mt_buf *out, const mt_bulk *batch);
bool mt_bulk_head_keep(int folder, const char *id, const mt_buf *head, mt_error *err) MT_NODISCARD;
mt_bulk *mt_bulk_head_read(int folder, const char *id); /* NULL: it is damaged */
void mt_bulk_free(mt_bulk *batch);

/* ---- input.c: the file of lines ---- */

/* The custom_id of a line as a digest, to find one that occurs twice. */
typedef struct mt_bulk_name {
    uint8_t digest[16];
    uint32_t line;
} mt_bulk_name;

/* Checks a line: {"custom_id", "method", "url", "body"} in OpenAI's API, {"custom_id", "params"} in
   Anthropic's. *custom and *body (or params) belong to the line. False: *why. */
bool mt_bulk_line_read(const mt_bulk *batch, const json_t *line, const char **custom, const json_t **body,
                       mt_failure *why);

/* Checks the lines of the client's file (OpenAI's API) and copies them to the batch's own. *errors: the
   faults as a JSON list, or empty; the caller frees it. Returns early once *stop is true. False: *err. */
bool mt_bulk_copy(mt_bulk *batch, int folder, mt_files *files, size_t line_most, const atomic_bool *stop,
                  mt_buf *errors, mt_error *err) MT_NODISCARD;

/* Checks the requests of a body (Anthropic's API) and writes them to the batch's file. False: *why. */
bool mt_bulk_spell(mt_bulk *batch, int folder, mt_files *files, const json_t *requests, mt_failure *why) MT_NODISCARD;

/* Opens the file of lines and finds each of them in it. False: *err. */
bool mt_bulk_index(mt_bulk *batch, int folder, mt_error *err) MT_NODISCARD;

/* A line of an active batch, parsed, a new reference. NULL: *err. */
json_t *mt_bulk_load(const mt_bulk *batch, size_t line, mt_error *err) MT_NODISCARD;

/* ---- results.c: lines of results, and files of them ---- */

/* Appends the line of results of a request with its response, or (none) of a line that was not answered. */
void mt_bulk_tell_response(mt_buf *out, const mt_bulk *batch, const char *custom, const char *request, int status,
                           const char *body);
void mt_bulk_tell_none(mt_buf *out, const mt_bulk *batch, const char *custom, mt_bulk_result result);

/* Called before a file of results becomes visible: writes its id to the batch's head. False: *err. */
typedef bool mt_bulk_noter(void *ctx, mt_bulk *batch, bool errors, const char *id, mt_error *err);

/* Makes the files of results of OpenAI's API from the journal, unless they exist. False: *err. */
bool mt_bulk_publish(mt_bulk *batch, int folder, mt_files *files, mt_bulk_noter *note, void *ctx,
                     mt_error *err) MT_NODISCARD;

#endif
