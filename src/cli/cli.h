/* The commands of motet, called by main.c. Each prints to standard output, errors to standard error, and returns the
   exit status. */
#ifndef MT_CLI_CLI_H
#define MT_CLI_CLI_H

#include <strings.h>

#include "options/options.h"

/* Whether an operand is a URL of a server rather than a folder or a name. */
static inline bool mt_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Whether text is HOST:PORT or [ADDRESS]:PORT, with or without a path, and no file of that name exists. */
bool mt_is_address(const char *text);

int mt_cmd_chat(const mt_options *opt);
int mt_cmd_info(const mt_options *opt); /* the commands info and show */
int mt_cmd_serve(const mt_options *opt);
int mt_cmd_follow(const mt_options *opt); /* the processes of an MPI job other than rank 0 */
int mt_cmd_batch(const mt_options *opt);
int mt_cmd_ps(const mt_options *opt);
int mt_cmd_stop(const mt_options *opt);
int mt_cmd_run(const mt_options *opt);
int mt_run_message(const mt_options *opt); /* the command run with a message for the chat template */
int mt_cmd_tokenize(const mt_options *opt);
int mt_cmd_detokenize(const mt_options *opt);
int mt_cmd_render(const mt_options *opt);
int mt_cmd_verify(const mt_options *opt);
int mt_cmd_bench(const mt_options *opt);
bool mt_bench_has_url(const mt_options *opt); /* whether a URL is given in place of a folder */
int mt_cmd_pull(const mt_options *opt);
int mt_cmd_list(const mt_options *opt);
int mt_cmd_rm(const mt_options *opt);
int mt_cmd_help(const mt_options *opt);

#endif
