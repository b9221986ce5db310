/* Replaces the commands that send HTTP requests where motet is built without libcurl: they only say so. */
#include <stdio.h>

#include "cli/bench.h"
#include "cli/cli.h"

int mt_cmd_chat(const mt_options *opt)
{
    (void)opt;
    fprintf(stderr, "motet: this motet was built without libcurl and cannot ask a server: start \"motet serve\" and "
                    "use another client\n");
    return 1;
}

int mt_run_message(const mt_options *opt)
{
    (void)opt;
    fprintf(stderr, "motet: this motet was built without libcurl and cannot ask a server: give raw text with "
                    "\"--prompt\", or start \"motet serve\" and use another client\n");
    return 1;
}

int mt_cmd_verify(const mt_options *opt)
{
    (void)opt;
    fprintf(stderr, "motet: this motet was built without libcurl and cannot ask a server: send the request again with "
                    "another client\n");
    return 2;
}

int mt_cmd_batch(const mt_options *opt)
{
    (void)opt;
    fprintf(stderr, "motet: this motet was built without libcurl and cannot ask a server: start \"motet serve\" and "
                    "send the file with another client\n");
    return 1;
}

static int refuse_list(void)
{
    fprintf(stderr, "motet: this motet was built without libcurl and cannot ask a server: GET /v1/models and POST "
                    "/v1/models/unload with another client\n");
    return 1;
}

int mt_cmd_ps(const mt_options *opt)
{
    (void)opt;
    return refuse_list();
}

int mt_cmd_stop(const mt_options *opt)
{
    (void)opt;
    return refuse_list();
}

bool mt_bench_server(const mt_options *opt, mt_report *report, mt_error *err)
{
    (void)opt, (void)report;
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "this motet was built without libcurl and cannot ask a server: measure with another");
}
