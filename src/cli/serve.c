/* The command motet serve: runs the server until a signal ends it, or only checks the options. */
#include <stdio.h>

#include "base/log.h"
#include "cli/cli.h"
#include "server/server.h"

/* of the report of a check */
enum { MOST_BYTES = 1 << 20 };

static int check(const mt_options *opt)
{
    mt_buf out;
    bool ok;

    mt_buf_init(&out, MOST_BYTES);
    /* That a model is loaded is no news here. */
    if (opt->log_level == MT_LOG_INFO && !opt->trace)
        mt_log_setup(MT_LOG_WARN, opt->log_format);
    ok = mt_serve_check(opt, &out);
    fputs(out.data, stdout);
    mt_buf_free(&out);
    return ok ? 0 : 1;
}

int mt_cmd_serve(const mt_options *opt)
{
    mt_error err = {0};

    if (opt->check)
        return check(opt);
    if (mt_serve(opt, &err))
        return 0;
    fprintf(stderr, "motet: %s\n", err.text);
    return 1;
}
