/* motet help, motet --help, motet COMMAND --help, motet version, motet --version. */
#include <stdio.h>

#include "cli/cli.h"
#include "media/fetch.h"
#include "media/video.h"

enum { MOST_BYTES = 1 << 20 };

/* The version, and what this build has (+) and lacks (-) of what it can do without. */
static void print_version(void)
{
    printf("motet " MT_VERSION " %cfetch %cvideo %cwebp\n", mt_fetch_present ? '+' : '-', mt_video_present ? '+' : '-',
           mt_image_webp_present ? '+' : '-');
}

int mt_cmd_help(const mt_options *opt)
{
    mt_buf out;

    if (opt->version || (opt->command == MT_COMMAND_VERSION && !opt->help)) {
        print_version();
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
