/* Jobs: work of a cursor for some requests, done in slices between steps. A job is a candidate of the scheduler, like
   the rows of a prompt, and its time is charged to the clients whose requests it works for. There is one job of the
   tower at a time, and one of each encoder. */
#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/inside.h"
#include "engine/limits.h"

void mt_job_init(mt_job *j, mt_cursor *cursor, void (*done)(mt_engine *e, mt_job *j))
{
    *j = (mt_job){.cursor = cursor, .done = done};
    mt_rate_init(&j->rate);
}

void mt_job_add(mt_job *j, mt_request *r, double size)
{
    assert(j->count < MT_JOB_PARTS);
    if (j->count == 0)
        j->began = mt_clock_ns();
    j->request[j->count] = r;
    j->size[j->count++] = size;
    j->whole += size;
}

void mt_job_clear(mt_job *j)
{
    j->count = 0;
    j->whole = 0;
    j->candidate = (mt_candidate){0};
}

mt_candidate *mt_job_offer(mt_job *j, const mt_request *first, uint64_t now)
{
    if (!first)
        first = j->request[0];
    j->candidate = (mt_candidate){.work = mt_cursor_left(j->cursor) * j->rate.seconds,
                                  .running = true,
                                  .priority = first->priority,
                                  .debt = mt_client_record_debt(first->client_record, now),
                                  .order = first->order * MT_LIMIT_SEQUENCES,
                                  .owed = j->candidate.owed};
    return &j->candidate;
}

/* Records a slice with the voices of all requests in the job. Parts are counted in the slice that completes the job. */
static void record(mt_engine *e, const mt_job *j, uint64_t begin, uint64_t end)
{
    const bool done = mt_cursor_left(j->cursor) <= 0;
    for (size_t i = 0, parts; i < j->count; i += parts) {
        const mt_request *r = j->request[i];
        for (parts = 1; i + parts < j->count && j->request[i + parts] == r;)
            parts++;
        mt_sounding slice = {.kind = r->encoder ? MT_NOTE_PROMPT : MT_NOTE_PICTURES, .begin = begin, .end = end};
        if (done)
            slice.count = r->encoder ? r->prompt_len : parts;
        if (r->encoder)
            mt_voices_play(e->voices, r->voice, &slice);
        for (uint32_t c = 0; !r->encoder && c < r->choices; c++)
            if (r->sequences[c].voice) /* the choice has not ended */
                mt_voices_play(e->voices, r->sequences[c].voice, &slice);
    }
}

/* Runs one slice, learns from its time, and charges it to the clients. */
static void run(mt_engine *e, mt_job *j)
{
    const double expected = j->candidate.worked;
    const uint64_t begin = mt_clock_ns();
    const double work = mt_cursor_run(j->cursor, expected / j->rate.seconds);
    mt_device_wait(e->dev);
    const uint64_t end = mt_clock_ns();
    const double seconds = (double)(end - begin) * 1e-9;
    mt_log_debug("engine.encode", "%.3g products for %zu parts, %.2f ms, %.2f expected", work, j->count, 1e3 * seconds,
                 1e3 * expected);
    mt_rate_learn(&j->rate, work, seconds);
    for (size_t i = 0; i < j->count; i++)
        mt_client_record_charge(j->request[i]->client_record, seconds * j->size[i] / j->whole, end);
    record(e, j, begin, end);
    j->seconds += seconds;
    j->work += work;
    if (mt_cursor_left(j->cursor) <= 0 && mt_device_well(e->dev, NULL))
        j->done(e, j);
}

void mt_jobs_run(mt_engine *e)
{
    for (size_t i = 0; i < e->job_count; i++)
        if (mt_job_planned(e->jobs[i]))
            run(e, e->jobs[i]);
}
