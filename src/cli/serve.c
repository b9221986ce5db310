/* motet serve: the server in the foreground. */
#include <stdio.h>

#include "cli/cli.h"
#include "server/server.h"

int mt_cmd_serve(const mt_options *opt)
{
    mt_error err = {0};

    if (mt_serve(opt, &err))
        return 0;
    fprintf(stderr, "motet: %s\n", err.text);
    return 1;
}
