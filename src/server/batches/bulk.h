/* A batch (mt_bulk, since a device has batches, too): requests of a client that are answered when nobody else has
   work, a line of a file each. What of it is on disk, and the parts of src/server/batches. */
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

/* What a batch does. The order is that of these words in OpenAI's API. */
typedef enum mt_bulk_state {
    MT_BULK_VALIDATING, /* its file is read */
    MT_BULK_FAILED,     /* no line of it is answered: `errors` says why */
    MT_BULK_RUNNING,
    MT_BULK_FINALIZING, /* all lines have their results, of which files are made */
    MT_BULK_COMPLETED,
    MT_BULK_EXPIRED,    /* its time was over before all lines were answered */
    MT_BULK_CANCELLING, /* no line is begun any more; those that were begun are answered */
    MT_BULK_CANCELLED,
    MT_BULK_STATES
} mt_bulk_state;

/* What became of a line: the kinds of the journal's records. */
typedef enum mt_bulk_result {
    MT_BULK_ANSWERED,
    MT_BULK_ERRED,
    MT_BULK_LAPSED,  /* the batch's time was over */
    MT_BULK_DROPPED, /* the batch was cancelled */
    MT_BULK_RESULTS,
    MT_BULK_AGAIN /* it has no result: it is answered again later */
} mt_bulk_result;

#define MT_BULK_KINDS "oexc" /* the letter of each in the journal */

/* A line while its batch is worked on. */
typedef struct mt_bulk_line {
    uint64_t begin;                                                          /* where it begins in the file of lines */
    uint32_t len;                                                            /* bytes, without the end of the line */
    enum { MT_LINE_WAITS, MT_LINE_GIVEN, MT_LINE_LEFT, MT_LINE_DONE } state; /* LEFT: to be done without an answer */
} mt_bulk_line;

typedef struct mt_bulk mt_bulk;

struct mt_bulk {
    mt_bulk *next; /* the batch that was made before */

    /* What is on disk. Under the lock of the batches; what does not change is read without. */
    char id[MT_RANDOM_ID], owner[MT_FILES_OWNER];
    bool anthropic;            /* made by Anthropic's API; else by OpenAI's */
    const char *endpoint;      /* the path that all lines are for, a constant */
    const mt_dialect *dialect; /* of that path */
    char input[MT_RANDOM_ID];  /* OpenAI's: the file that the lines are from */
    char *metadata;            /* OpenAI's: JSON, or NULL */
    char window[32];           /* OpenAI's: how long it may take, as the client wrote it */
    int64_t output_seconds;    /* OpenAI's: after which the output expires; 0: as files do */
    mt_bulk_state state;
    int64_t at[MT_BULK_STATES]; /* when it got into each state, seconds since 1970; 0: it has not been in it */
    int64_t expires;
    char output[MT_RANDOM_ID], errors_file[MT_RANDOM_ID]; /* OpenAI's: files of the results; "": none */
    char *errors; /* OpenAI's: why it has failed, a JSON list; NULL: it has not */
    size_t total; /* lines; 0: not known yet */

    /* Under the lock. The counts are those of the journal, and of the head once the batch is over. */
    size_t counts[MT_BULK_RESULTS];
    int64_t cancel; /* when a client has asked for it to be cancelled; 0: none has */
    bool gone;      /* deleted: the thread frees it */

    /* Only the batches' thread uses the rest. */
    bool counted;   /* counts are those of the journal */
    bool failing;   /* something could not be written; it is tried again at `later` */
    uint64_t later; /* mt_clock_ns: before it, nothing is begun or written */
    mt_files_part *claim;
    /* The following where it is active */
    bool active;
    mt_journal *journal;
    int lines_fd;
    mt_bulk_line *lines;
    size_t first;  /* no line before it waits */
    size_t flying; /* lines that are given and have no result yet */
};

/* A line on its way: from the batches' thread to the io thread, which answers it, and back. */
typedef struct mt_bulk_job {
    mt_message message;
    mt_server *server;
    mt_bulk *batch;
    uint32_t line;
    char *custom; /* the client's name for the line */
    char *body;
    size_t body_len, charged; /* charged: bytes taken from the server's room for it */
    mt_bulk_result result;
    mt_buf text; /* the line of the results */
    struct mt_bulk_job *next;
} mt_bulk_job;

void mt_bulk_job_free(mt_bulk_job *job);
void mt_bulk_job_open(mt_message *message); /* io thread: begins to answer a line */

/* The path of a batch's lines and its dialect; NULL: lines may not be for it. */
const char *mt_bulk_endpoint(const char *path, const mt_dialect **dialect);

static inline bool mt_bulk_is_over(mt_bulk_state state)
{
    return state == MT_BULK_FAILED || state == MT_BULK_COMPLETED || state == MT_BULK_EXPIRED ||
           state == MT_BULK_CANCELLED;
}

/* ---- head.c: what is known of a batch, in a file that is replaced as a whole ---- */

#define MT_BULK_HEAD ".batch"      /* ends of file names, behind the id: what is known of it */
#define MT_BULK_LINES ".lines"     /* its lines */
#define MT_BULK_JOURNAL ".results" /* and their results */

typedef char mt_bulk_path[MT_RANDOM_ID + 16];

const char *mt_bulk_path_of(mt_bulk_path path, const mt_bulk *batch, const char *end);
void mt_bulk_head_write(mt_buf *out, const mt_bulk *batch);
bool mt_bulk_head_keep(int folder, const char *id, const mt_buf *head, mt_error *err) MT_NODISCARD;
mt_bulk *mt_bulk_head_read(int folder, const char *id); /* NULL: it is not as it was written */
void mt_bulk_free(mt_bulk *batch);

/* ---- input.c: its lines ---- */

/* The names of lines, to find one that is there twice. */
typedef struct mt_bulk_name {
    uint8_t digest[16];
    uint32_t line;
} mt_bulk_name;

/* A line of OpenAI's or ours: {"custom_id", "body"}, where Anthropic's requests have "params". False: *why. Both are of
   the line. */
bool mt_bulk_line_read(const mt_bulk *batch, const json_t *line, const char **custom, const json_t **body,
                       mt_failure *why);

/* Writes the lines of OpenAI's input file to the batch's own file. *errors: a JSON list where there are any; the caller
   frees it. Gives up once *stop is true. False: *err. */
bool mt_bulk_copy(mt_bulk *batch, int folder, mt_files *files, size_t line_most, const atomic_bool *stop,
                  mt_buf *errors, mt_error *err) MT_NODISCARD;

/* Writes the requests of Anthropic's body to the batch's own file. False: *why. */
bool mt_bulk_spell(mt_bulk *batch, int folder, mt_files *files, const json_t *requests, mt_failure *why) MT_NODISCARD;

/* Finds where each line begins. False: *err. */
bool mt_bulk_index(mt_bulk *batch, int folder, mt_error *err) MT_NODISCARD;

/* A line of an active batch, parsed, a new reference. NULL: *err. */
json_t *mt_bulk_load(const mt_bulk *batch, size_t line, mt_error *err) MT_NODISCARD;

/* ---- results.c: lines of results, and files of them ---- */

/* The result of a line that was not answered, or was: status and body of the response. */
void mt_bulk_tell_response(mt_buf *out, const mt_bulk *batch, const char *custom, const char *request, int status,
                           const char *body);
void mt_bulk_tell_none(mt_buf *out, const mt_bulk *batch, const char *custom, mt_bulk_result result);

/* Called before a file of results gets its name: notes the id in the batch's head. False: *err. */
typedef bool mt_bulk_noter(void *ctx, mt_bulk *batch, bool errors, const char *id, mt_error *err);

/* Makes OpenAI's files of the journal, unless they were made before. False: *err. */
bool mt_bulk_publish(mt_bulk *batch, int folder, mt_files *files, mt_bulk_noter *note, void *ctx,
                     mt_error *err) MT_NODISCARD;

#endif
