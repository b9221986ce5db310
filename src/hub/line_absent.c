/* Replaces line.c in a build without libcurl: every request fails. */
#include "hub/line.h"
#include "hub/pull.h"

const bool mt_pull_present = false;

mt_line *mt_line_open(mt_remote *remote, const mt_hub_name *name, const atomic_bool *stop, mt_error *err)
{
    (void)remote, (void)stop;
    mt_fail(err, MT_E_UNSUPPORTED,
            "this motet was built without libcurl and cannot download: get the model with: hf download %s", name->id);
    return NULL;
}

void mt_line_close(mt_line *line)
{
    (void)line;
}

mt_line_end mt_line_ask(mt_line *line, const mt_line_request *request, mt_line_answer *answer, mt_error *err)
{
    (void)line, (void)request, (void)answer, (void)err;
    return MT_LINE_REFUSED;
}

bool mt_line_pause(const mt_line *line, const mt_line_answer *answer, unsigned *tries, unsigned most, mt_error *err)
{
    (void)line, (void)answer, (void)tries, (void)most, (void)err;
    return false;
}

bool mt_line_get(mt_line *line, const mt_line_request *request, mt_buf *out, mt_line_answer *answer, mt_error *err)
{
    (void)line, (void)request, (void)out, (void)answer, (void)err;
    return false;
}
