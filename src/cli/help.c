/* The commands motet help and motet version, and the options --help and --version. */
#include <stdio.h>
#include <sys/utsname.h>

#include "base/version.h"
#include "cli/cli.h"
#include "device/device.h"
#include "events/publisher.h"
#include "kernels/kernels.h"
#include "media/fetch.h"
#include "media/video.h"
#include "ranks/ranks.h"
#include "tier/wire.h"

/* of a help text */
enum { MOST_BYTES = 1 << 20 };

#ifdef __clang__
#define COMPILER __VERSION__ /* contains the name of the compiler */
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Prints the version, the optional parts that this build has (+) or lacks (-), the commit, the compiler, and the
   processor. */
static void print_version(void)
{
    char sets[256];
    struct utsname machine;

    printf("motet %s %cevents %cfetch %cmpi %cremote +tls %cvideo %cwebp\n", mt_version,
           mt_publisher_present ? '+' : '-', mt_fetch_present ? '+' : '-', mt_ranks_present ? '+' : '-',
           mt_wire_present ? '+' : '-', mt_video_present ? '+' : '-', mt_image_webp_present ? '+' : '-');
    printf("commit: %s\ncompiler: " COMPILER "\n", mt_version_source);
    printf("devices: %s\n", mt_device_names());
    printf("processor: %s with %s\n", uname(&machine) ? "unknown" : machine.machine,
           mt_cpu_names(mt_cpu_detect(), sets, sizeof(sets)));
}

static void write_help(mt_buf *out, const mt_options *opt)
{
    switch (opt->help_form) {
    case MT_HELP_MARKDOWN: mt_options_markdown(out); break;
    case MT_HELP_CONF: mt_options_conf(out); break;
    case MT_HELP_MAN: mt_options_man(out); break;
    case MT_HELP_MAN_CONF: mt_options_man_conf(out); break;
    case MT_HELP_BASH: mt_options_bash(out); break;
    case MT_HELP_ZSH: mt_options_zsh(out); break;
    case MT_HELP_FISH: mt_options_fish(out); break;
    case MT_HELP_FOREIGN: mt_options_foreign_markdown(out); break;
    case MT_HELP_TEXT:
        mt_options_help(out, opt->command != MT_COMMAND_HELP || opt->help ? opt->command : opt->topic);
        break;
    }
}

int mt_cmd_help(const mt_options *opt)
{
    mt_buf out;

    if (opt->version || (opt->command == MT_COMMAND_VERSION && !opt->help)) {
        print_version();
        return 0;
    }
    mt_buf_init(&out, MOST_BYTES);
    write_help(&out, opt);
    fputs(out.data, stdout);
    mt_buf_free(&out);
    return 0;
}
