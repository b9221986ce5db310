/* motet help, motet --help, motet COMMAND --help, motet version, motet --version. */
#include <stdio.h>

#include "cli/cli.h"

enum { MOST_BYTES = 1 << 20 };

int mt_cmd_help(const mt_options *opt)
{
    mt_buf out;

    if (opt->version || (opt->command == MT_COMMAND_VERSION && !opt->help)) {
        puts("motet " MT_VERSION);
        return 0;
    }
    mt_buf_init(&out, MOST_BYTES);
    if (opt->markdown)
        mt_options_markdown(&out);
    else if (opt->command == MT_COMMAND_HELP)
        mt_options_help(&out, opt->help ? MT_COMMAND_HELP : opt->topic);
    else
        mt_options_help(&out, opt->command);
    fputs(out.data, stdout);
    mt_buf_free(&out);
    return 0;
}
