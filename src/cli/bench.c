/* The command motet bench: decides between the two kinds of measurement, a model in this process (bench_model.c) and
   servers over HTTP (bench_server.c), and ends the report. */
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"
#include "cli/cli.h"

enum { EXIT_USAGE = 2 };

bool mt_bench_has_url(const mt_options *opt)
{
    return opt->bench_url || opt->bench_compare || (opt->dir && mt_is_url(opt->dir));
}

static bool check(const mt_options *opt, mt_error *err)
{
    if (opt->bench_compare && (!opt->dir || !opt->input || opt->bench_url))
        return mt_fail(err, MT_E_INVALID, "\"--compare\" needs two servers: motet bench --compare URL1 URL2");
    if (opt->bench_compare)
        return true;
    if (opt->input)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is one argument too many; two servers go with --compare", opt->input);
    if ((opt->dir != NULL) + (opt->bench_shape != NULL) + (opt->bench_url != NULL) != 1)
        return mt_fail(err, MT_E_INVALID,
                       "give one thing to measure: motet bench DIR, motet bench --shape NAME or motet bench --url URL");
    return true;
}

int mt_cmd_bench(const mt_options *opt)
{
    mt_error err = {0};
    mt_report report;
    if (!check(opt, &err)) {
        fprintf(stderr, "motet: %s\n", err.text);
        return EXIT_USAGE;
    }
    mt_report_init(&report, opt->json);
    json_object_set_new(report.facts, "motet", json_string(MT_VERSION));
    bool ok = mt_bench_has_url(opt) ? mt_bench_server(opt, &report, &err) : mt_bench_model(opt, &report, &err);
    ok = ok && mt_report_end(&report, opt->bench_plot, &err);
    mt_report_free(&report);
    if (!ok)
        fprintf(stderr, "motet: %s\n", err.text);
    return ok ? 0 : 1;
}
