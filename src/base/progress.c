/* See progress.h. */
#include "base/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

#define SECOND UINT64_C(1000000000)
#define PATIENCE (SECOND / 2) /* before the first line */
#define ON_TERMINAL (SECOND / 8)
#define IN_LOG (5 * SECOND)
#define LATELY 5.0 /* seconds over which the rate is averaged */

static struct {
    void (*told)(void *ctx, const char *what, unsigned percent);
    void *ctx;
} watcher;

void mt_progress_watch(void (*told)(void *ctx, const char *what, unsigned percent), void *ctx)
{
    watcher.told = told;
    watcher.ctx = ctx;
}

void mt_progress_begin(mt_progress *p, const char *event, const char *what, uint64_t total)
{
    *p = (mt_progress){.event = event, .what = what, .total = total, .next = mt_clock_ns() + PATIENCE};
}

void mt_progress_begin_bytes(mt_progress *p, const char *event, const char *what, uint64_t done, uint64_t total)
{
    mt_progress_begin(p, event, what, total);
    p->bytes = true;
    p->done = p->had = done;
    p->then = mt_clock_ns();
}

/* Recent bytes count most, so that a transfer that stalls shows soon. */
static void find_rate(mt_progress *p, uint64_t now)
{
    const double seconds = (double)(now - p->then) / (double)SECOND;
    const double lately = p->done > p->had && seconds > 0 ? (double)(p->done - p->had) / seconds : 0;
    const double part = seconds < LATELY ? seconds / LATELY : 1;

    p->rate = p->rate > 0 ? p->rate + (lately - p->rate) * part : lately;
    p->then = now;
    p->had = p->done;
}

static void tell_bytes(const mt_progress *p, unsigned percent)
{
    static const char full[] = "####################", empty[] = "....................";
    char total[MT_UNITS_TEXT], rate[MT_UNITS_TEXT], left[MT_UNITS_TEXT] = "";
    const int cells = (int)(percent * (sizeof(full) - 1) / 100);

    if (p->rate >= 1)
        mt_seconds_text((uint64_t)((double)(p->total - p->done) / p->rate), left);
    mt_bytes_text(p->total, total);
    mt_bytes_text((uint64_t)p->rate, rate);
    if (mt_log_on_terminal())
        mt_log_passing(p->event, "%s [%.*s%.*s] %u %% of %s, %s/s%s%s%s", p->what, cells, full,
                       (int)sizeof(empty) - 1 - cells, empty, percent, total, rate, *left ? ", " : "", left,
                       *left ? " left" : "");
    else
        mt_log_passing(p->event, "%s: %u %% of %s, %s/s%s%s%s", p->what, percent, total, rate, *left ? ", " : "", left,
                       *left ? " left" : "");
}

static void tell(mt_progress *p)
{
    const uint64_t now = mt_clock_ns();
    unsigned percent;

    if (now < p->next)
        return;
    p->next = now + (mt_log_on_terminal() ? ON_TERMINAL : IN_LOG);
    percent = p->total ? (unsigned)((double)p->done * 100 / (double)p->total) : 100;
    if (p->bytes) {
        find_rate(p, now);
        tell_bytes(p, percent);
    } else
        mt_log_passing(p->event, "%s: %u %%", p->what, percent);
    if (watcher.told)
        watcher.told(watcher.ctx, p->what, percent);
}

void mt_progress_add(mt_progress *p, uint64_t done)
{
    p->done += done < p->total - p->done ? done : p->total - p->done;
    tell(p);
}

void mt_progress_set(mt_progress *p, uint64_t done, uint64_t total)
{
    p->total = total;
    p->done = done < p->total ? done : p->total;
    tell(p);
}

void mt_progress_end(void)
{
    mt_log_passed();
}
