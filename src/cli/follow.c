/* A process that mpirun has started besides rank 0: computes its share of the steps that rank 0 announces. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "engine/follow.h"
#include "ranks/ranks.h"

/* Ignores the signals that end a job: mpirun sends them to all ranks, but rank 0 first lets answers finish and then
   ends the others. */
static void leave_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    mt_signals_ignore();
}

int mt_cmd_follow(const mt_options *opt)
{
    const mt_device_params params = mt_options_device(opt);
    mt_ranks *ranks = mt_ranks_all();
    mt_error err = {0};

    leave_signals();
    if (mt_follow(ranks, &params, &err))
        return 0;
    mt_log_error("ranks.failed", "rank %zu: %s", mt_ranks_own(ranks), err.text);
    _Exit(EXIT_FAILURE); /* mpirun then ends the other ranks */
}
