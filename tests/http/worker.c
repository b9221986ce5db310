/* Answers that another thread makes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "echo.h"

static void try_again(void)
{
    usleep(1000);
}

static void send_pieces(const echo_job *job)
{
    char *data = malloc((size_t)job->size + 1);
    mt_http_posted posted = MT_HTTP_POSTED;

    memset(data, 'y', (size_t)job->size);
    for (long i = 0; i < job->pieces && posted != MT_HTTP_CLOSED; i++) {
        bool last = i + 1 == job->pieces;

        while ((posted = mt_http_post_write(job->server, job->handle, data, (size_t)job->size, last)) == MT_HTTP_FULL)
            try_again();
    }
    free(data);
}

/* pieces=0: a whole answer after delay_ms, by when the client may be another. */
static void do_job(const echo_job *job)
{
    mt_http_header header = {"x-made-by", "worker"};
    mt_http_response response = {.status = 200, .type = "text/plain", .headers = &header, .header_count = 1};

    usleep((useconds_t)job->delay_ms * 1000);
    if (job->pieces == 0) {
        while (mt_http_post_answer(job->server, job->handle, &response, "whole", 5) == MT_HTTP_FULL)
            try_again();
        return;
    }
    while (mt_http_post_begin(job->server, job->handle, &response) == MT_HTTP_FULL)
        try_again();
    send_pieces(job);
}

void *echo_worker(void *arg)
{
    echo_app *app = arg;
    echo_job *job;

    while ((job = mt_queue_wait(app->jobs, -1))) {
        do_job(job);
        free(job);
    }
    return NULL;
}

void echo_threaded(void *user, mt_http_server *server, mt_http_request *request)
{
    echo_job *job = calloc(1, sizeof(*job));

    (void)user;
    job->server = server;
    job->handle = request->handle;
    job->pieces = echo_query(request, "n", 0);
    job->size = echo_query(request, "size", 10);
    job->delay_ms = echo_query(request, "ms", 0);
    if (!mt_queue_push(echo.jobs, job)) {
        mt_http_fail(server, request->handle, request->path, 429, "too many jobs");
        free(job);
    }
    mt_http_request_free(request);
}
